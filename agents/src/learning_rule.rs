//! Gradient steps of one agent: Adam and RMSprop, whose moments are part of its state.

use serde::{Deserialize, Serialize};

/// How a gradient becomes a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LearningRule {
    /// Kingma and Ba 2015, with decays 0.9 and 0.999.
    Adam {
        /// Step size.
        learning_rate: f32,
    },
    /// RMSprop that subtracts the mean of the gradient, as Mnih et al. 2015 use it.
    RmsProp {
        /// Step size.
        learning_rate: f32,
        /// Decay of both means.
        decay: f32,
        /// Added to the root of the variance.
        epsilon: f32,
    },
}

const FIRST_DECAY: f32 = 0.9;
const SECOND_DECAY: f32 = 0.999;
const ADAM_EPSILON: f32 = 1e-8;

/// The moments of a learning rule.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Moments {
    /// Mean of the gradient.
    pub(crate) first: Vec<f32>,
    /// Mean of its square.
    pub(crate) second: Vec<f32>,
    /// Gradients applied.
    pub(crate) steps: u64,
}

impl Moments {
    /// Takes one step; each number of the gradient is clipped to ±`clip` first.
    pub(crate) fn step(&mut self, rule: LearningRule, weights: &mut [f32], gradient: &[f32], clip: f32) {
        self.first.resize(weights.len(), 0.0);
        self.second.resize(weights.len(), 0.0);
        self.steps += 1;
        let all = weights.iter_mut().zip(gradient).zip(self.first.iter_mut().zip(&mut self.second));
        match rule {
            LearningRule::Adam { learning_rate } => {
                let exponent = i32::try_from(self.steps).unwrap_or(i32::MAX);
                let first = (1.0 - f64::from(FIRST_DECAY).powi(exponent)) as f32;
                let second = (1.0 - f64::from(SECOND_DECAY).powi(exponent)) as f32;
                for ((w, g), (m, v)) in all {
                    let g = g.clamp(-clip, clip);
                    *m += (1.0 - FIRST_DECAY) * (g - *m);
                    *v += (1.0 - SECOND_DECAY) * (g * g - *v);
                    *w -= learning_rate * (*m / first) / ((*v / second).sqrt() + ADAM_EPSILON);
                }
            }
            LearningRule::RmsProp { learning_rate, decay, epsilon } => {
                for ((w, g), (m, v)) in all {
                    let g = g.clamp(-clip, clip);
                    *m += (1.0 - decay) * (g - *m);
                    *v += (1.0 - decay) * (g * g - *v);
                    *w -= learning_rate * g / ((*v - *m * *m).max(0.0).sqrt() + epsilon);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_steps(rule: LearningRule) -> Vec<f32> {
        let (mut moments, mut weights) = (Moments::default(), vec![0.5, -0.5]);
        moments.step(rule, &mut weights, &[1.0, -3.0], 2.0);
        moments.step(rule, &mut weights, &[0.5, 0.0], 2.0);
        weights
    }

    fn assert_close(found: &[f32], expected: [f64; 2]) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 2e-6, "{found} {expected}");
        }
    }

    /// torch.optim.Adam, lr = 0.1, on gradients (1, −2), then (0.5, 0).
    #[test]
    fn adam_takes_the_steps_of_a_reference() {
        let bias = |power: i32, decay: f64| 1.0 - decay.powi(power);
        let second = |m: f64, v: f64| 0.1 * (m / bias(2, 0.9)) / ((v / bias(2, 0.999)).sqrt() + 1e-8);
        let left = 0.5 - 0.1 - second(0.9 * 0.1 + 0.05, 0.999 * 0.001 + 0.00025);
        let right = -0.5 + 0.1 + second(0.9 * 0.2, 0.999 * 0.004);
        assert_close(&two_steps(LearningRule::Adam { learning_rate: 0.1 }), [left, right]);
    }

    /// torch.optim.RMSprop, centered, lr = 0.1, alpha = 0.95, eps = 0.01, on gradients (1, −2), then (0.5, 0).
    #[test]
    fn rms_prop_takes_the_steps_of_a_reference() {
        let step = |g: f64, m: f64, v: f64| 0.1 * g / ((v - m * m).sqrt() + 0.01);
        let left = 0.5 - step(1.0, 0.05, 0.05) - step(0.5, 0.95 * 0.05 + 0.025, 0.95 * 0.05 + 0.0125);
        let right = -0.5 - step(-2.0, -0.1, 0.2);
        let rule = LearningRule::RmsProp { learning_rate: 0.1, decay: 0.95, epsilon: 0.01 };
        assert_close(&two_steps(rule), [left, right]);
    }
}
