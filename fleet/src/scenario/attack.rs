//! Attacks of single nodes: what they send instead of the truth.

use clap::ValueEnum;
use evenhand_protocol::codec::{Bf16, EncodedUpdate};
use evenhand_protocol::message::{Answer, Declined, MeasureRequest, Message, Order};
use evenhand_protocol::reference::sketch;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// Rounds after which a node that was honest at first begins to cheat.
const HONEST_ROUNDS: u32 = 40;
/// Rounds that a node lets pass so that it is not alone in any.
const DECLINED_ROUNDS: u32 = 5;
/// Rounds in which nodes that read their first hours have no sample yet.
const WARM_UP_ROUNDS: u32 = 3;
/// The share of the moving direction that remains after a round.
const DIRECTION_DECAY: f32 = 0.95;
/// The factor of loud attacks.
const LOUD: f32 = 1000.0;
/// Different answers of a node that sends them in turn.
const ANSWERS_IN_TURN: usize = 10;

/// Messages that a node sends instead of honest work with its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attack {
    /// Declines everything
    Nothing,
    /// Vectors of zeros
    Zeros,
    /// Noise of the usual length
    Noise,
    /// Noise, a thousand times as long, of as many samples as may be claimed
    LoudNoise,
    /// The opposite of the truth, at three times its length
    Opposite,
    /// The opposite of the truth, a thousand times as long
    LoudOpposite,
    /// Its first answers again and again
    FirstAnswer,
    /// Its first answers again, with a little noise
    FirstAnswerNoisy,
    /// Ten answers in turn
    AnswersInTurn,
    /// The way that the models it was given have gone
    ModelDirection,
    /// The same with noise of the same length
    ModelDirectionNoisy,
    /// The step between the last two models it was given
    LastStep,
    /// The same, a thousand times as long
    LoudLastStep,
    /// The opposite of it, a thousand times as long
    LoudLastStepBack,
    /// The moving average of the steps between the models it was given
    DirectionReplay,
    /// Declines five rounds, then loud noise
    DeclinesThenLoud,
    /// Loud noise in the first rounds, in which nobody else has data; noise of the usual length from then on
    AloneThenNoise,
    /// No data in the first rounds, honest from then on
    WarmUp,
    /// Loud for 40 rounds, then nothing
    LoudThenNothing,
    /// Honest reference gradients; is silent whenever it was given a model
    QuitsWhenDrawn,
    /// Honest reference gradients; takes models and sends no update
    NoUpdates,
    /// Honest for 40 rounds, then noise
    HonestThenNoise,
    /// Honest for 40 rounds, then nothing
    HonestThenNothing,
    /// One vector in every round, the same as the other colluders'
    SharedVector,
    /// A new vector in each round, the same as the other colluders'
    SharedFreshVector,
}

impl Attack {
    /// The attacks of one node.
    pub const SINGLE: [Self; 21] = [
        Self::Nothing,
        Self::Zeros,
        Self::Noise,
        Self::LoudNoise,
        Self::Opposite,
        Self::LoudOpposite,
        Self::FirstAnswer,
        Self::FirstAnswerNoisy,
        Self::AnswersInTurn,
        Self::ModelDirection,
        Self::ModelDirectionNoisy,
        Self::LastStep,
        Self::LoudLastStep,
        Self::LoudLastStepBack,
        Self::DirectionReplay,
        Self::DeclinesThenLoud,
        Self::NoUpdates,
        Self::QuitsWhenDrawn,
        Self::HonestThenNoise,
        Self::HonestThenNothing,
        Self::LoudThenNothing,
    ];
    /// The attacks of several nodes together.
    pub const COLLUDING: [Self; 5] = [
        Self::LoudNoise,
        Self::LoudOpposite,
        Self::ModelDirectionNoisy,
        Self::SharedVector,
        Self::SharedFreshVector,
    ];

    /// Whether its answers of this round are longer than the truth, and claim as many samples as may be claimed.
    fn is_loud(self, round: u32) -> bool {
        match self {
            Self::LoudNoise
            | Self::LoudOpposite
            | Self::LoudLastStep
            | Self::LoudLastStepBack
            | Self::DeclinesThenLoud => true,
            Self::AloneThenNoise => round <= WARM_UP_ROUNDS,
            Self::LoudThenNothing => round <= HONEST_ROUNDS,
            _ => false,
        }
    }
}

/// An attacker: what it does, and what it remembers.
pub struct Attacker {
    attack: Attack,
    rng: ChaCha8Rng,
    /// Seed that colluders share.
    shared: u64,
    /// Earlier answers: updates, and reference gradients.
    updates: Vec<Vec<f32>>,
    gradients: Vec<Vec<f32>>,
    first_model: Option<Vec<f32>>,
    /// The last model it was given, the step before it, and the moving average of such steps.
    last_model: Option<Vec<f32>>,
    last_step: Option<Vec<f32>>,
    direction: Option<Vec<f32>>,
    request: Option<MeasureRequest>,
    samples_max: u32,
}

impl Attacker {
    /// An attacker before its first message.
    pub fn new(attack: Attack, seed: u64, node: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(node as u64 + 1);
        Self {
            attack,
            rng,
            shared: seed,
            updates: Vec::new(),
            gradients: Vec::new(),
            first_model: None,
            last_model: None,
            last_step: None,
            direction: None,
            request: None,
            samples_max: u32::MAX,
        }
    }

    /// Takes note of a message of the coordinator.
    pub fn observe(&mut self, message: &Message) {
        match message {
            Message::Order(Order::Measure(request)) => self.request = Some(request.clone()),
            Message::Order(Order::Train(train)) => {
                self.samples_max = train.samples_max;
                if let Some(weights) = &train.weights {
                    self.remember(weights);
                }
            }
            _ => {}
        }
    }

    /// Takes note of a model: the step that led to it is what the others' updates were, up to a factor.
    fn remember(&mut self, weights: &[f32]) {
        self.first_model.get_or_insert_with(|| weights.to_vec());
        if let Some(before) = self.last_model.replace(weights.to_vec()) {
            let step: Vec<f32> = before.iter().zip(weights).map(|(before, after)| before - after).collect();
            let direction = self.direction.get_or_insert_with(|| vec![0.0; step.len()]);
            direction.iter_mut().zip(&step).for_each(|(sum, step)| *sum = DIRECTION_DECAY * *sum + step);
            self.last_step = Some(step);
        }
    }

    /// The message that it sends instead of `message`, if any, while it holds the model `held`.
    pub fn tamper(&mut self, message: Message, held: Option<&[f32]>) -> Option<Message> {
        let answer = match message {
            Message::Answer(answer) => answer,
            other => return Some(other),
        };
        let answer = match answer {
            Answer::Update(_) if self.attack == Attack::QuitsWhenDrawn => return None,
            Answer::Update(mut update) => {
                let EncodedUpdate::F32(honest) = update.vector else {
                    return Some(Message::Answer(Answer::Update(update)));
                };
                let round = update.round;
                if self.attack == Attack::NoUpdates || self.is_silent(round) {
                    Answer::Decline { round, reason: Declined::TrainingFailed }
                } else {
                    if self.attack.is_loud(round) {
                        update.samples = self.samples_max;
                    }
                    let way = self.way(held);
                    let mut kept = std::mem::take(&mut self.updates);
                    update.vector = EncodedUpdate::F32(self.vector(round, honest, way, &mut kept));
                    self.updates = kept;
                    Answer::Update(update)
                }
            }
            Answer::Measured(mut measured) => {
                let round = measured.round;
                let honest = measured.vector.decode(measured.vector.entries()).unwrap_or_default();
                if self.is_silent(round) {
                    Answer::Unmeasured { round, reason: Declined::NoData }
                } else if matches!(self.attack, Attack::NoUpdates | Attack::QuitsWhenDrawn) {
                    Answer::Measured(measured)
                } else {
                    let request = self.request.as_ref();
                    let way = self
                        .way(held)
                        .zip(request)
                        .map(|(way, request)| sketch(&way, request.seed, request.dimension as usize));
                    let mut kept = std::mem::take(&mut self.gradients);
                    measured.vector = Bf16::encode(&self.vector(round, honest, way, &mut kept));
                    self.gradients = kept;
                    Answer::Measured(measured)
                }
            }
            other => other,
        };
        Some(Message::Answer(answer))
    }

    fn is_silent(&self, round: u32) -> bool {
        match self.attack {
            Attack::Nothing => true,
            Attack::HonestThenNothing | Attack::LoudThenNothing => round > HONEST_ROUNDS,
            Attack::DeclinesThenLoud => round <= DECLINED_ROUNDS,
            Attack::WarmUp => round <= WARM_UP_ROUNDS,
            _ => false,
        }
    }

    /// Where the models it was given have gone: what the others' gradients point to, up to a factor.
    fn way(&self, held: Option<&[f32]>) -> Option<Vec<f32>> {
        match self.attack {
            Attack::LastStep | Attack::LoudLastStep | Attack::LoudLastStepBack => {
                return self.last_step.clone().filter(|step| step.iter().any(|value| *value != 0.0));
            }
            Attack::DirectionReplay => return self.direction.clone(),
            _ => {}
        }
        let (first, held) = (self.first_model.as_ref()?, held?);
        let way: Vec<f32> = first.iter().zip(held).map(|(first, held)| first - held).collect();
        way.iter().any(|value| *value != 0.0).then_some(way)
    }

    fn vector(
        &mut self,
        round: u32,
        honest: Vec<f32>,
        way: Option<Vec<f32>>,
        kept: &mut Vec<Vec<f32>>,
    ) -> Vec<f32> {
        let length = norm(&honest);
        let scaled = |factor: f32, values: Vec<f32>| -> Vec<f32> {
            values.into_iter().map(|value| factor * value).collect()
        };
        match self.attack {
            Attack::Nothing
            | Attack::NoUpdates
            | Attack::QuitsWhenDrawn
            | Attack::WarmUp
            | Attack::HonestThenNothing => honest,
            Attack::Zeros => vec![0.0; honest.len()],
            Attack::HonestThenNoise if round <= HONEST_ROUNDS => honest,
            Attack::Noise | Attack::HonestThenNoise => noise(&mut self.rng, honest.len(), length),
            Attack::AloneThenNoise if round > WARM_UP_ROUNDS => noise(&mut self.rng, honest.len(), length),
            Attack::LoudNoise
            | Attack::DeclinesThenLoud
            | Attack::AloneThenNoise
            | Attack::LoudThenNothing => noise(&mut self.rng, honest.len(), LOUD * length),
            Attack::Opposite => scaled(-3.0, honest),
            Attack::LoudOpposite => scaled(-LOUD, honest),
            Attack::FirstAnswer | Attack::FirstAnswerNoisy => {
                if kept.is_empty() {
                    kept.push(honest);
                }
                let first = kept[0].clone();
                let share = if self.attack == Attack::FirstAnswer { 0.0 } else { 0.2 };
                plus(first, &noise(&mut self.rng, kept[0].len(), share * length))
            }
            Attack::AnswersInTurn => {
                if kept.len() < ANSWERS_IN_TURN {
                    kept.push(honest);
                }
                kept[round as usize % kept.len()].clone()
            }
            Attack::ModelDirection
            | Attack::ModelDirectionNoisy
            | Attack::LastStep
            | Attack::LoudLastStep
            | Attack::LoudLastStepBack
            | Attack::DirectionReplay => match way {
                Some(way) if way.len() == honest.len() => {
                    let loud = match self.attack {
                        Attack::LoudLastStep => LOUD,
                        Attack::LoudLastStepBack => -LOUD,
                        _ => 1.0,
                    };
                    let factor = loud * length / norm(&way).max(f32::MIN_POSITIVE);
                    let share = if self.attack == Attack::ModelDirectionNoisy { 1.0 } else { 0.0 };
                    plus(scaled(factor, way), &noise(&mut self.rng, honest.len(), share * length))
                }
                _ => honest,
            },
            Attack::SharedVector | Attack::SharedFreshVector => {
                let mut common = ChaCha8Rng::seed_from_u64(self.shared);
                if self.attack == Attack::SharedFreshVector {
                    common.set_stream(u64::from(round));
                }
                let common = noise(&mut common, honest.len(), length);
                plus(common, &noise(&mut self.rng, honest.len(), 0.3 * length))
            }
        }
    }
}

fn norm(values: &[f32]) -> f32 {
    values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt() as f32
}

/// Normal noise of about this length.
fn noise(rng: &mut ChaCha8Rng, dimension: usize, length: f32) -> Vec<f32> {
    let scale = length / (dimension.max(1) as f32).sqrt();
    (0..dimension).map(|_| scale * rng.sample::<f32, _>(StandardNormal)).collect()
}

fn plus(mut values: Vec<f32>, others: &[f32]) -> Vec<f32> {
    values.iter_mut().zip(others).for_each(|(value, other)| *value += other);
    values
}
