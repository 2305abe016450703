//! Clean, held-out samples that models of coalitions are judged on: everybody's, and each node's own.
//!
//! A household's data are worth most to the household itself: where one lives unlike all others, nothing else teaches its
//! model. What a node gives to the others is its Shapley value in the games in which it is no judge.

use evenhand_models::{Loss, ModelError, Trainer};
use rand::seq::index;
use rand_chacha::ChaCha8Rng;

use crate::scenario::HeldOut;
use crate::sim::online::{EvaluationBatch, OnlineScore};

/// Held-out samples, of all nodes together and by node.
pub(super) struct Judges {
    all: EvaluationBatch,
    /// The nodes that have samples of their own, with these; empty where samples are anybody's.
    own: Vec<(usize, EvaluationBatch)>,
}

/// The scores of a model.
pub(super) struct Judgement {
    /// By all samples.
    pub(super) all: OnlineScore,
    /// The loss on each judge's own samples, in the order of [`Judges::shares`].
    pub(super) losses: Vec<f64>,
}

impl Judges {
    /// At most `samples_max` of the samples, chosen without replacement.
    pub(super) fn new(held_out: HeldOut, samples_max: usize, rng: &mut ChaCha8Rng) -> Self {
        let HeldOut { clean, nodes } = held_out;
        let scales = clean.scales.iter().map(|(mean, deviation)| (f64::from(*mean), f64::from(*deviation)));
        let whole = EvaluationBatch { scales: scales.collect(), batch: clean.batch };
        let samples = whole.batch.samples();
        let chosen = match samples <= samples_max {
            true => (0..samples).collect(),
            false => index::sample(rng, samples, samples_max).into_vec(),
        };
        let of = |node: usize, nodes: &[usize]| -> Vec<usize> {
            chosen.iter().copied().filter(|at| nodes[*at] == node).collect()
        };
        let nodes = nodes.unwrap_or_default();
        let last = nodes.iter().max().map_or(0, |node| node + 1);
        let own = (0..last).map(|node| (node, of(node, &nodes))).filter(|(_, at)| !at.is_empty());
        Self { own: own.map(|(node, at)| (node, whole.chosen(&at))).collect(), all: whole.chosen(&chosen) }
    }

    /// Every node that judges, and its share of the samples.
    pub(super) fn shares(&self) -> Vec<(usize, f64)> {
        let all = self.all.batch.samples() as f64;
        self.own.iter().map(|(node, own)| (*node, own.batch.samples() as f64 / all)).collect()
    }

    /// The scores of a model.
    pub(super) fn judge(
        &self,
        trainer: &mut Trainer,
        loss: Loss,
        weights: &[f32],
    ) -> Result<Judgement, ModelError> {
        let losses = self.own.iter().map(|(_, own)| Ok(own.score(trainer, loss, weights)?.loss));
        Ok(Judgement {
            losses: losses.collect::<Result<_, ModelError>>()?,
            all: self.all.score(trainer, loss, weights)?,
        })
    }
}

/// The mean loss on the samples of all but `node`; none where nobody else judges.
pub(super) fn loss_of_others(shares: &[(usize, f64)], losses: &[f64], node: usize) -> Option<f64> {
    let others = || shares.iter().zip(losses).filter(|((judge, _), _)| *judge != node);
    let weight: f64 = others().map(|((_, share), _)| share).sum();
    (weight > 0.0).then(|| others().map(|((_, share), loss)| share * loss).sum::<f64>() / weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_all_but_the_node() {
        let shares = [(0, 0.5), (2, 0.25), (3, 0.25)];
        assert_eq!(loss_of_others(&shares, &[8.0, 1.0, 3.0], 0), Some(2.0));
        assert_eq!(loss_of_others(&shares, &[8.0, 1.0, 3.0], 2), Some((4.0 + 0.75) / 0.75));
        assert_eq!(
            loss_of_others(&shares, &[8.0, 1.0, 3.0], 1),
            Some(5.0),
            "a node without samples judges nobody"
        );
        assert_eq!(loss_of_others(&shares[..1], &[8.0], 0), None);
        assert_eq!(loss_of_others(&[], &[], 0), None);
    }
}
