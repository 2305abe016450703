//! The guard of the model: a step that is too long is shortened, a model that got lost is taken back.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::weights::Weights;

/// Rounds over which losses and steps are compared.
const WINDOW: usize = 25;
/// Steps and losses that must be known before anything is judged by them.
const KNOWN_MIN: usize = 5;
/// A step is shortened to so many times the median of the last ones; that of a node alone in a round of several to the median.
const STEP_RATIO_MAX: f64 = 3.0;
/// A model is lost whose loss is so many times the median of the last ones, and above that of the first rounds.
const LOSS_RATIO_MAX: f64 = 10.0;
/// The share of a step that is taken after a model was lost, and its growth in each good round.
const STEP_SHARE: f64 = 0.5;
const STEP_GROWTH: f64 = 1.05;
/// Below this share of a step the federation has failed.
const STEP_SHARE_MIN: f64 = 1e-3;

/// An intervention of the guard in one round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Intervention {
    /// The step was shortened to this share of its length.
    Shortened {
        /// Between 0 and 1.
        share: f64,
    },
    /// The last good model was restored, and steps are shortened from now on.
    Restored {
        /// The share of a step that is taken from now on.
        share: f64,
    },
}

/// Medians of losses and steps, and the last good model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct ModelGuard {
    losses: VecDeque<f64>,
    steps: VecDeque<f64>,
    /// Median loss of the first rounds: that of a model that has learnt nothing yet.
    first_loss: Option<f64>,
    /// The last model that was seen to be good.
    good: Option<Weights>,
    /// The share of each step that is taken, after models were lost; 0 stands for 1 before the first round.
    share: Option<f64>,
}

/// The model after the guard's review.
pub(crate) struct GuardedModel {
    pub(crate) model: Weights,
    pub(crate) intervention: Option<Intervention>,
}

impl ModelGuard {
    /// Reviews the step from `before` to `next`, made of so many of the `wanted` updates; `loss` is that of `before`. None if
    /// the model is lost time and again, however short the steps.
    pub(crate) fn review(
        &mut self,
        before: &Weights,
        next: Weights,
        loss: Option<f64>,
        arrived: usize,
        wanted: usize,
    ) -> Option<GuardedModel> {
        if loss.is_some_and(|loss| self.is_lost(loss)) || !next.is_finite() {
            return self.restore(before);
        }
        if let Some(loss) = loss {
            push(&mut self.losses, loss);
            if self.losses.len() == KNOWN_MIN && self.first_loss.is_none() {
                self.first_loss = median(&self.losses);
            }
            self.good = Some(before.clone());
        }
        let steady = self.share.unwrap_or(1.0);
        self.share = Some((steady * STEP_GROWTH).min(1.0));
        let length = distance(before, &next);
        let alone = arrived < 2 && wanted > 1;
        let limit = match median(&self.steps).filter(|_| self.steps.len() >= KNOWN_MIN) {
            Some(median) if alone => median,
            Some(median) => STEP_RATIO_MAX * median,
            // Nobody moves the model alone before it is known how far one moves.
            None if alone => 0.0,
            None => f64::INFINITY,
        };
        // The step of one says nothing of how far all move.
        if length > 0.0 && !alone {
            push(&mut self.steps, length.min(limit));
        }
        let share = steady * if length > limit { limit / length } else { 1.0 };
        if share >= 1.0 {
            return Some(GuardedModel { model: next, intervention: None });
        }
        let part = |(from, to): (&f32, &f32)| f64::from(*from) + share * (f64::from(*to) - f64::from(*from));
        let model = before.values().iter().zip(next.values()).map(part).collect();
        Some(GuardedModel { model, intervention: Some(Intervention::Shortened { share }) })
    }

    fn is_lost(&self, loss: f64) -> bool {
        let known = self.losses.len() >= KNOWN_MIN;
        !loss.is_finite()
            || known
                && median(&self.losses).is_some_and(|median| loss > LOSS_RATIO_MAX * median)
                && self.first_loss.is_some_and(|first| loss > first)
    }

    fn restore(&mut self, before: &Weights) -> Option<GuardedModel> {
        let share = self.share.unwrap_or(1.0) * STEP_SHARE;
        self.share = Some(share);
        self.steps.clear();
        if share < STEP_SHARE_MIN {
            return None;
        }
        let model = self.good.clone().unwrap_or_else(|| before.clone());
        model
            .is_finite()
            .then_some(GuardedModel { model, intervention: Some(Intervention::Restored { share }) })
    }
}

fn push(values: &mut VecDeque<f64>, value: f64) {
    values.truncate(WINDOW - 1);
    values.push_front(value);
}

fn median(values: &VecDeque<f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

fn distance(a: &Weights, b: &Weights) -> f64 {
    let squares = a.values().iter().zip(b.values()).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
    squares.sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn weights(value: f32) -> Weights {
        Weights::new([value, 0.0].into())
    }

    /// A guard that has seen ten steps of length 1 and losses of 1.
    fn calm() -> ModelGuard {
        let mut guard = ModelGuard::default();
        for round in 0u8..10 {
            let at = f32::from(round);
            let seen = guard.review(&weights(at), weights(at + 1.0), Some(1.0), 4, 4).unwrap();
            assert_eq!((seen.model, seen.intervention), (weights(at + 1.0), None));
        }
        guard
    }

    #[test]
    fn a_long_step_is_shortened_to_three_times_the_usual_one() {
        let seen = calm().review(&weights(10.0), weights(1010.0), Some(1.0), 4, 4).unwrap();
        assert_eq!(seen.model, weights(13.0));
        assert!(matches!(seen.intervention, Some(Intervention::Shortened { .. })));
    }

    #[test]
    fn a_lost_model_is_taken_back_and_steps_become_shorter() {
        let mut guard = calm();
        let seen = guard.review(&weights(500.0), weights(900.0), Some(11.0), 4, 4).unwrap();
        assert_eq!(
            (seen.model, seen.intervention),
            (weights(9.0), Some(Intervention::Restored { share: 0.5 }))
        );
        let seen = guard.review(&weights(9.0), weights(10.0), Some(1.0), 4, 4).unwrap();
        assert_eq!(seen.model, weights(9.5));
    }

    #[test]
    fn a_hard_round_is_not_a_lost_model() {
        // Twenty times the usual loss, and still below that of the first rounds.
        let mut guard = ModelGuard::default();
        for round in 0u8..60 {
            let loss = if round < 5 { 2.0 } else { 0.05 };
            guard.review(&weights(0.0), weights(1.0), Some(loss), 4, 4).unwrap();
        }
        let seen = guard.review(&weights(0.0), weights(1.0), Some(1.0), 4, 4).unwrap();
        assert_eq!(seen.intervention, None);
    }

    #[test]
    fn nobody_moves_a_new_model_alone() {
        let mut guard = ModelGuard::default();
        let seen = guard.review(&weights(0.0), weights(9000.0), Some(1.0), 1, 4).unwrap();
        assert_eq!(seen.model, weights(0.0));
    }

    #[test]
    fn who_is_alone_in_a_round_of_several_moves_no_further_than_usual() {
        let mut guard = calm();
        for _ in 0..100 {
            let seen = guard.review(&weights(0.0), weights(9000.0), Some(1.0), 1, 4).unwrap();
            assert_eq!(seen.model, weights(1.0));
        }
        // Where one node a round is drawn, nobody else is missing.
        let seen = guard.review(&weights(0.0), weights(9000.0), Some(1.0), 1, 1).unwrap();
        assert_eq!(seen.model, weights(3.0));
    }

    #[test]
    fn a_model_that_is_lost_again_and_again_has_failed() {
        let mut guard = calm();
        let reviews = (0..20).map(|_| guard.review(&weights(1.0), weights(f32::NAN), None, 4, 4).is_some());
        let reviews: Vec<bool> = reviews.collect();
        assert!(reviews[0] && !reviews[19]);
    }
}
