//! An attacker's question: which readings give the update that was seen?

use super::network::{AttackedBatch, AttackedLoss, AttackedNetwork, Derivative};

/// A value of a sample as the attacker sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueSlot {
    /// Public: the calendar, or a constant.
    Known(f64),
    /// The unknown with this number.
    Unknown(usize),
}

/// The samples behind an update, in terms of unknowns.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleLayout {
    /// Number of samples.
    pub samples: usize,
    /// All inputs, then all targets, each sample by sample.
    pub slots: Vec<ValueSlot>,
}

/// What the public knows of an unknown before it sees anything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublicGuess {
    /// Mean over other households.
    pub mean: f64,
    /// Standard deviation over other households.
    pub deviation: f64,
}

/// What was seen: a sum of gradients at weights that the attacker knows.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenUpdate {
    /// The update.
    pub vector: Vec<f64>,
    /// Weights at which gradients were taken, each with the factor of its gradient. After several local steps those in between
    /// are not known: they are taken to lie evenly between the model before and after.
    pub points: Vec<(Vec<f64>, f64)>,
    /// Standard deviation of what was added to each value: noise, and rounding by the codec.
    pub noise: f64,
}

impl SeenUpdate {
    /// Length of what was added, relative to the whole.
    pub(super) fn noise_share(&self) -> f64 {
        let squares: f64 = self.vector.iter().map(|value| value * value).sum();
        self.noise * (self.vector.len() as f64 / squares.max(f64::MIN_POSITIVE)).sqrt()
    }
}

/// An attack's question.
#[derive(Debug, Clone, PartialEq)]
pub struct LeakProblem {
    /// The network.
    pub network: AttackedNetwork,
    /// The loss.
    pub loss: AttackedLoss,
    /// The samples.
    pub layout: SampleLayout,
    /// The unknowns.
    pub unknowns: Vec<PublicGuess>,
    /// What was seen.
    pub seen: SeenUpdate,
}

/// Steps of numeric derivatives.
const VALUE_STEP: f64 = 1e-6;
const WEIGHT_STEP: f64 = 1e-6;

impl LeakProblem {
    /// The unknowns at so many deviations from their means.
    pub fn unknowns_at(&self, deviations: &[f64]) -> Vec<f64> {
        let unknown = |(known, z): (&PublicGuess, &f64)| known.mean + known.deviation * z;
        self.unknowns.iter().zip(deviations).map(unknown).collect()
    }

    /// The samples of these unknowns.
    pub fn batch(&self, deviations: &[f64]) -> AttackedBatch {
        let unknowns = self.unknowns_at(deviations);
        let value = |slot: &ValueSlot| match slot {
            ValueSlot::Known(value) => *value,
            ValueSlot::Unknown(number) => unknowns[*number],
        };
        AttackedBatch { samples: self.layout.samples, values: self.layout.slots.iter().map(value).collect() }
    }

    /// Derivatives in the unknowns, by deviations, of what has these derivatives in inputs and targets.
    pub fn in_unknowns(&self, slopes: &[f64]) -> Vec<f64> {
        let mut of_unknowns = vec![0.0; self.unknowns.len()];
        for (slot, slope) in self.layout.slots.iter().zip(slopes) {
            if let ValueSlot::Unknown(number) = slot {
                of_unknowns[*number] += slope * self.unknowns[*number].deviation;
            }
        }
        of_unknowns
    }

    /// The update that these unknowns would give.
    pub(super) fn update(&self, deviations: &[f64]) -> Vec<f64> {
        let batch = self.batch(deviations);
        let mut sum = vec![0.0; self.network.parameters()];
        for (weights, factor) in &self.seen.points {
            let gradient = self.network.gradient(weights, &batch, &self.loss);
            super::network::add_scaled(&mut sum, *factor, &gradient);
        }
        sum
    }

    /// J·v: how the update changes along a direction of the unknowns.
    pub(super) fn forward(&self, deviations: &[f64], at: &[f64], direction: &[f64]) -> Vec<f64> {
        let step = VALUE_STEP / largest(direction);
        let moved: Vec<f64> = deviations.iter().zip(direction).map(|(z, v)| z + step * v).collect();
        self.update(&moved).iter().zip(at).map(|(moved, at)| (moved - at) / step).collect()
    }

    /// Jᵀ·w, without a second derivative: the slope in the unknowns of w·∇L is how the slopes of L in its values change along w
    /// in the weights.
    pub(super) fn backward(&self, deviations: &[f64], direction: &[f64]) -> Vec<f64> {
        let batch = self.batch(deviations);
        let step = WEIGHT_STEP / largest(direction);
        let mut slopes = vec![0.0; batch.values.len()];
        for (weights, factor) in &self.seen.points {
            let mut difference = |sign: f64| {
                let moved: Vec<f64> =
                    weights.iter().zip(direction).map(|(weight, w)| weight + 0.5 * sign * step * w).collect();
                let mut of_values = vec![0.0; batch.values.len()];
                self.network.derive(&moved, &batch, &self.loss, Derivative::Values(&mut of_values));
                super::network::add_scaled(&mut slopes, sign * factor / step, &of_values);
            };
            difference(1.0);
            difference(-1.0);
        }
        self.in_unknowns(&slopes)
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(1e-12, |most, value| most.max(value.abs()))
}
