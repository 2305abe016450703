//! Momentum and Adam across rounds.

use evenhand_protocol::message::UpdateKind;
use serde::{Deserialize, Serialize};

/// Adam's decay of the first and second moments, and the ε of its denominator (Kingma and Ba 2015).
const FIRST_DECAY: f32 = 0.9;
const SECOND_DECAY: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// The moments of an optimiser; empty until an order names one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct OptimiserState {
    /// v of momentum, or Adam's first moment.
    #[serde(with = "evenhand_protocol::bytes::f32s")]
    first: Vec<f32>,
    /// Adam's second moment; empty with momentum.
    #[serde(with = "evenhand_protocol::bytes::f32s")]
    second: Vec<f32>,
    /// Gradients applied.
    steps: u32,
}

impl OptimiserState {
    /// The update for a finite gradient. None if a parameter is out of range, or if the moments have overflowed, which are
    /// then reset.
    pub(super) fn update(&mut self, kind: UpdateKind, gradient: Vec<f32>) -> Option<Vec<f32>> {
        let update = self.step(kind, gradient)?;
        let finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
        if finite(&update) && finite(&self.first) && finite(&self.second) {
            return Some(update);
        }
        *self = Self::default();
        None
    }

    fn step(&mut self, kind: UpdateKind, gradient: Vec<f32>) -> Option<Vec<f32>> {
        match kind {
            UpdateKind::Gradient | UpdateKind::Epochs { .. } => Some(gradient),
            UpdateKind::Momentum { momentum } => {
                if !(0.0..1.0).contains(&momentum) {
                    return None;
                }
                self.fit(gradient.len(), 0);
                for (v, g) in self.first.iter_mut().zip(&gradient) {
                    *v = momentum * *v + g;
                }
                Some(self.first.clone())
            }
            UpdateKind::Adam => Some(self.adam(gradient)),
        }
    }

    /// m̂/(√v̂ + ε) with m ← 0.9m + 0.1g, v ← 0.999v + 0.001g², both corrected for their start at 0.
    fn adam(&mut self, mut gradient: Vec<f32>) -> Vec<f32> {
        self.fit(gradient.len(), gradient.len());
        self.steps = self.steps.saturating_add(1);
        let exponent = i32::try_from(self.steps).unwrap_or(i32::MAX);
        let first = 1.0 - f64::from(FIRST_DECAY).powi(exponent);
        let second = 1.0 - f64::from(SECOND_DECAY).powi(exponent);
        let (first, second) = (first as f32, second as f32);
        for ((m, v), g) in self.first.iter_mut().zip(&mut self.second).zip(&mut gradient) {
            *m = FIRST_DECAY * *m + (1.0 - FIRST_DECAY) * *g;
            *v = SECOND_DECAY * *v + (1.0 - SECOND_DECAY) * *g * *g;
            *g = (*m / first) / ((*v / second).sqrt() + EPSILON);
        }
        gradient
    }

    /// Resets the moments if they belong to another optimiser or model.
    fn fit(&mut self, first: usize, second: usize) {
        if (self.first.len(), self.second.len()) != (first, second) {
            *self = Self { first: vec![0.0; first], second: vec![0.0; second], steps: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn momentum_continues_across_rounds() {
        let mut optimiser = OptimiserState::default();
        let kind = UpdateKind::Momentum { momentum: 0.5 };
        assert_eq!(optimiser.update(kind, vec![1.0, -2.0]).unwrap(), [1.0, -2.0]);
        assert_eq!(optimiser.update(kind, vec![1.0, 0.0]).unwrap(), [1.5, -1.0]);
        assert_eq!(optimiser.update(UpdateKind::Gradient, vec![3.0, 3.0]).unwrap(), [3.0, 3.0]);
        assert_eq!(optimiser.update(UpdateKind::Momentum { momentum: f32::NAN }, vec![1.0, 1.0]), None);
        assert_eq!(
            optimiser.update(kind, vec![0.0, 0.0]).unwrap(),
            [0.75, -0.5],
            "a refusal changes nothing"
        );
    }

    /// Against torch.optim.Adam with lr = 1 on gradients (1, −2), then (1, 0).
    #[test]
    fn adam_takes_the_steps_of_a_reference() {
        let mut optimiser = OptimiserState::default();
        let close = |found: Vec<f32>, wanted: [f32; 2]| {
            assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?} {wanted:?}");
        };
        close(optimiser.update(UpdateKind::Adam, vec![1.0, -2.0]).unwrap(), [1.0, -1.0]);
        close(optimiser.update(UpdateKind::Adam, vec![1.0, 0.0]).unwrap(), ADAM_SECOND);
    }

    const ADAM_SECOND: [f32; 2] = [1.0, -0.670_058_4];

    #[test]
    fn overflowing_moments_are_reset() {
        for kind in [UpdateKind::Momentum { momentum: 0.9 }, UpdateKind::Adam] {
            let mut optimiser = OptimiserState::default();
            while optimiser.update(kind, vec![f32::MAX]).is_some() {}
            let mut fresh = OptimiserState::default();
            assert_eq!(optimiser.update(kind, vec![1.0]), fresh.update(kind, vec![1.0]), "{kind:?}");
        }
    }

    #[test]
    fn another_model_resets_the_moments() {
        let mut optimiser = OptimiserState::default();
        let kind = UpdateKind::Momentum { momentum: 0.5 };
        optimiser.update(kind, vec![8.0]).unwrap();
        assert_eq!(optimiser.update(kind, vec![1.0, 1.0]).unwrap(), [1.0, 1.0]);
    }
}
