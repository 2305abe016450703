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
    pub const SINGLE: [Self; 14] = [
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
        Self::NoUpdates,
        Self::HonestThenNoise,
        Self::HonestThenNothing,
    ];
    /// The attacks of several nodes together.
    pub const COLLUDING: [Self; 4] =
        [Self::LoudNoise, Self::ModelDirectionNoisy, Self::SharedVector, Self::SharedFreshVector];
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
    request: Option<MeasureRequest>,
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
            request: None,
        }
    }

    /// Takes note of a message of the coordinator.
    pub fn observe(&mut self, message: &Message) {
        match message {
            Message::Order(Order::Measure(request)) => self.request = Some(request.clone()),
            Message::Order(Order::Train(train)) => {
                if let (None, Some(weights)) = (&self.first_model, &train.weights) {
                    self.first_model = Some(weights.clone());
                }
            }
            _ => {}
        }
    }

    /// The message that it sends instead of `message`, while it holds the model `held`.
    pub fn tamper(&mut self, message: Message, held: Option<&[f32]>) -> Message {
        let answer = match message {
            Message::Answer(answer) => answer,
            other => return other,
        };
        let answer = match answer {
            Answer::Update(mut update) => {
                let EncodedUpdate::F32(honest) = update.vector else {
                    return Message::Answer(Answer::Update(update));
                };
                let round = update.round;
                if self.attack == Attack::NoUpdates || self.is_silent(round) {
                    Answer::Decline { round, reason: Declined::TrainingFailed }
                } else {
                    if self.attack == Attack::LoudNoise {
                        update.samples = update.samples.saturating_mul(3);
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
                } else if self.attack == Attack::NoUpdates {
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
        Message::Answer(answer)
    }

    fn is_silent(&self, round: u32) -> bool {
        match self.attack {
            Attack::Nothing => true,
            Attack::HonestThenNothing => round > HONEST_ROUNDS,
            _ => false,
        }
    }

    /// Where the models it was given have gone: what the others' gradients point to, up to a factor.
    fn way(&self, held: Option<&[f32]>) -> Option<Vec<f32>> {
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
            Attack::Nothing | Attack::NoUpdates | Attack::HonestThenNothing => honest,
            Attack::Zeros => vec![0.0; honest.len()],
            Attack::HonestThenNoise if round <= HONEST_ROUNDS => honest,
            Attack::Noise | Attack::HonestThenNoise => noise(&mut self.rng, honest.len(), length),
            Attack::LoudNoise => noise(&mut self.rng, honest.len(), LOUD * length),
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
            Attack::ModelDirection | Attack::ModelDirectionNoisy => match way {
                Some(way) if way.len() == honest.len() => {
                    let factor = length / norm(&way).max(f32::MIN_POSITIVE);
                    let share = if self.attack == Attack::ModelDirection { 0.0 } else { 1.0 };
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
