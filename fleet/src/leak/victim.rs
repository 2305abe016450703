//! Households whose updates are attacked: their batches as a node makes them, and what the public knows.

use evenhand_models::{Batch, LoadOptions, Loss, Model, Sgd, Targets, Trainer, shipped};
use evenhand_node::config::PrivacyConfig;
use evenhand_node::privacy::{NoiseSeed, ReleaseKind, protect};
use evenhand_node::reading::Reading;
use evenhand_protocol::codec::{self, CodecKind, ErrorFeedback};
use evenhand_protocol::reference::reference_weights;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::LeakError;
use super::attack::AttackEffort;
use super::batches::{self, VictimBatch};
use super::network::{AttackedLoss, AttackedNetwork};
use super::problem::{LeakProblem, SeenUpdate};

/// A shipped model for loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttackedModel {
    /// Lags and calendar, by a recurrent network
    ElectricityRnn,
    /// The default model: corrections of a profile's quantiles
    LoadQuantiles,
    /// 13 × 40 past loads, by a dense network
    ElectricityMlp,
}

/// What is seen of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeenKind {
    /// The plain gradient
    Gradient,
    /// θ_old − θ_new after the local steps of the coordinator's default configuration
    LocalSteps,
    /// The gradient at reference weights
    Reference,
}

/// What is attacked, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct LeakSettings {
    /// Models.
    pub models: Vec<AttackedModel>,
    /// What is seen; none for what a node with its default configuration sends.
    pub seen: Option<Vec<SeenKind>>,
    /// Samples of a batch.
    pub samples: Vec<usize>,
    /// `privacy.noise`, by which every configuration is attacked.
    pub noise: Vec<f64>,
    /// `privacy.clip`.
    pub clip: f64,
    /// Codec of updates.
    pub codec: CodecKind,
    /// Households attacked.
    pub victims: usize,
    /// Effort of an attack.
    pub effort: AttackEffort,
    /// Seed of everything random.
    pub seed: u64,
}

/// Passes, step size and momentum of local training: the coordinator's default.
pub(super) const LOCAL: Sgd = Sgd { epochs: 10, learning_rate: 0.1, momentum: 0.9, batch_size: None };
/// Weights between the model before and after that an attacker takes the gradients at.
const POINTS: usize = 3;

impl AttackedModel {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ElectricityRnn => "electricity-rnn",
            Self::LoadQuantiles => "load-quantiles",
            Self::ElectricityMlp => "electricity-mlp",
        }
    }

    pub(super) fn file(self) -> &'static [u8] {
        match self {
            Self::ElectricityRnn => shipped::ELECTRICITY_RNN,
            Self::LoadQuantiles => shipped::LOAD_QUANTILES,
            Self::ElectricityMlp => shipped::ELECTRICITY_MLP,
        }
    }

    pub(super) fn network(self) -> AttackedNetwork {
        match self {
            Self::ElectricityRnn => {
                AttackedNetwork::Recurrent { lags: batches::LAGS, features: 5, hidden: 40 }
            }
            Self::LoadQuantiles => AttackedNetwork::Dense(vec![41, 32, 32, 3]),
            Self::ElectricityMlp => AttackedNetwork::Dense(vec![520, 100, 50, 1]),
        }
    }

    fn loss(self, seen: SeenKind) -> (Loss, AttackedLoss) {
        match (self, seen) {
            (Self::LoadQuantiles, SeenKind::Gradient | SeenKind::LocalSteps) => {
                (Loss::Pinball, AttackedLoss::Pinball(vec![0.1, 0.5, 0.9]))
            }
            _ => (Loss::Mse, AttackedLoss::Squared),
        }
    }

    /// What a node with its default configuration sends, with the fewest samples it may have.
    fn defaults(self) -> [(SeenKind, usize); 2] {
        match self {
            // A day of half hours.
            Self::ElectricityRnn => [(SeenKind::LocalSteps, 48), (SeenKind::Reference, 48)],
            // The coordinator's training.samples_max, and four rows of each reading of a day.
            Self::LoadQuantiles => [(SeenKind::LocalSteps, 512), (SeenKind::Reference, 192)],
            Self::ElectricityMlp => [(SeenKind::LocalSteps, 256), (SeenKind::Reference, 256)],
        }
    }
}

impl SeenKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gradient => "gradient",
            Self::LocalSteps => "local steps",
            Self::Reference => "reference",
        }
    }
}

impl LeakSettings {
    /// What is seen of a model, with the samples of its batch.
    pub(super) fn configurations(&self, model: AttackedModel) -> Vec<(SeenKind, usize)> {
        match &self.seen {
            None => model.defaults().to_vec(),
            Some(seen) => {
                let of = |seen: &SeenKind| self.samples.iter().map(|samples| (*seen, *samples)).collect();
                seen.iter().flat_map::<Vec<_>, _>(of).collect()
            }
        }
    }
}

/// A reading behind an update.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LeakedReading {
    /// Unknowns whose sum it is.
    pub(super) parts: Vec<usize>,
    /// What was measured.
    pub(super) truth: f64,
    /// The likeliest value of the public.
    pub(super) guess: f64,
    /// The household's deviation.
    pub(super) deviation: f64,
}

/// An update and the readings behind it.
#[derive(Debug, Clone)]
pub(super) struct VictimCase {
    pub(super) problem: LeakProblem,
    pub(super) readings: Vec<LeakedReading>,
}

/// Households that are attacked, and the others, which everybody knows.
pub(super) struct VictimPool {
    model: AttackedModel,
    onnx: Model,
    weights: Vec<f32>,
    victims: Vec<Vec<Reading>>,
    public: Vec<Vec<Reading>>,
    privacy: PrivacyConfig,
    codec: CodecKind,
    seed: u64,
}

impl VictimPool {
    pub(super) fn new(
        model: AttackedModel,
        settings: &LeakSettings,
        households: &[Vec<Reading>],
    ) -> Result<Self, LeakError> {
        if households.len() < settings.victims + 2 {
            return Err(LeakError::Households(households.len()));
        }
        let (victims, public) = households.split_at(settings.victims);
        let onnx = Model::load(model.file(), &LoadOptions::default())?;
        model.network().check(onnx.dim())?;
        let mut pool = Self {
            weights: onnx.initial_weights(),
            model,
            onnx,
            victims: victims.to_vec(),
            public: public.to_vec(),
            privacy: PrivacyConfig { clip: settings.clip, ..PrivacyConfig::none() },
            codec: settings.codec,
            seed: settings.seed,
        };
        pool.learn()?;
        Ok(pool)
    }

    pub(super) fn victims(&self) -> usize {
        self.victims.len()
    }

    pub(super) fn model(&self) -> AttackedModel {
        self.model
    }

    /// Some rounds of training on others' readings: the file's last layer may be zero, and then says little.
    fn learn(&mut self) -> Result<(), LeakError> {
        let mut trainer = Trainer::new(&self.onnx);
        let (loss, _) = self.model.loss(SeenKind::LocalSteps);
        for household in self.public.iter().take(8) {
            let Some(taken) = batches::batch(self.model, household, 256, SeenKind::LocalSteps, self.seed)
            else {
                continue;
            };
            let sgd = Sgd { epochs: 5, learning_rate: 0.02, ..LOCAL };
            let step = trainer.local_epochs(&self.weights, &taken.batch, loss, &sgd)?.gradient;
            self.weights.iter_mut().zip(step).for_each(|(weight, step)| *weight -= step);
        }
        Ok(())
    }

    /// The update of a victim; none if it has too few readings.
    pub(super) fn case(
        &self,
        victim: usize,
        seen: SeenKind,
        samples: usize,
        noise: f64,
    ) -> Result<Option<VictimCase>, LeakError> {
        let seed = self.seed.wrapping_mul(1000).wrapping_add(victim as u64);
        let household = &self.victims[victim];
        let Some(taken) = batches::batch(self.model, household, samples, seen, seed) else { return Ok(None) };
        let (loss, attacked_loss) = self.model.loss(seen);
        let mut trainer = Trainer::new(&self.onnx);
        let privacy = PrivacyConfig { noise, ..self.privacy.clone() };
        let mut generator = NoiseSeed::repeatable(seed).generator();
        let (vector, points) = match seen {
            SeenKind::Gradient => {
                let gradient = trainer.gradient(&self.weights, &taken.batch, loss)?.gradient;
                (gradient, vec![(double(&self.weights), 1.0)])
            }
            SeenKind::LocalSteps => {
                let step = trainer.local_epochs(&self.weights, &taken.batch, loss, &LOCAL)?.gradient;
                let points = between(&self.weights, &step);
                (step, points)
            }
            SeenKind::Reference => {
                let weights = reference_weights(&self.onnx.initial_weights(), self.seed);
                let gradient = trainer.gradient(&weights, &taken.batch, loss)?.gradient;
                // A gradient of more than 4,096 values is sketched before it is sent: the attacker is given it whole.
                (gradient, vec![(double(&weights), 1.0)])
            }
        };
        let kind = if seen == SeenKind::Reference { ReleaseKind::Measurement } else { ReleaseKind::Update };
        let protected = protect(vector, kind, None, &privacy, &mut generator);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let encoded = codec::encode(self.codec, &protected.vector, &mut ErrorFeedback::default(), &mut rng);
        let decoded = encoded.decode(protected.vector.len()).unwrap_or_else(|_| protected.vector.clone());
        let rounding = deviation(&decoded, &protected.vector);
        let VictimBatch { layout, unknowns, readings, .. } =
            taken.with_public(self.model, &self.public, seen);
        let seen = SeenUpdate {
            vector: double(&decoded),
            points: points.into_iter().map(|(at, factor)| (at, factor * protected.factor)).collect(),
            noise: protected.deviation.hypot(rounding),
        };
        let network = self.model.network();
        let problem = LeakProblem { network, loss: attacked_loss, layout, unknowns, seen };
        Ok(Some(VictimCase { problem, readings }))
    }
}

fn double(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

/// Root mean square difference of what was decoded to what was encoded.
fn deviation(decoded: &[f32], encoded: &[f32]) -> f64 {
    let squares = decoded.iter().zip(encoded).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
    (squares / decoded.len().max(1) as f64).sqrt()
}

/// Weights of local training as somebody imagines them who knows the first and the last: evenly apart. The factors are those of
/// the gradients in a descent with momentum.
fn between(weights: &[f32], step: &[f32]) -> Vec<(Vec<f64>, f64)> {
    let epochs = LOCAL.epochs as i32;
    let momentum = f64::from(LOCAL.momentum);
    // A gradient of epoch e moves the weights in that and all later epochs.
    let total: f64 = (1..=epochs).map(|left| (1.0 - momentum.powi(left)) / (1.0 - momentum)).sum();
    let factor = f64::from(LOCAL.learning_rate) * total / POINTS as f64;
    let at = |point: usize| {
        let share = (point as f64 + 0.5) / POINTS as f64 * 0.6;
        let moved = |(weight, step): (&f32, &f32)| f64::from(*weight) - share * f64::from(*step);
        (weights.iter().zip(step).map(moved).collect(), factor)
    };
    (0..POINTS).map(at).collect()
}

/// Values of a batch's targets.
pub(super) fn target_values(batch: &Batch) -> &[f32] {
    match &batch.targets {
        Targets::Values(values) => values,
        Targets::Classes(_) | Targets::Chosen { .. } => &[],
    }
}
