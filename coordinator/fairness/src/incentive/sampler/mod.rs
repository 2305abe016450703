//! Samplers: the draw of the nodes that receive the latest model.

mod credit;
mod with_replacement;
mod without_replacement;

pub use credit::{inclusion_probabilities, wait_bound};

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A way to draw k nodes, by its name in configurations and on command lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SamplerKind {
    /// The paper's: k independent draws, so at most k distinct nodes.
    #[default]
    WithReplacement,
    /// The published code's: k draws one after the other among those not drawn yet.
    WithoutReplacement,
    /// Ours: the k nodes with the highest credit.
    Credit,
}

impl fmt::Display for SamplerKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(out)
    }
}

/// A sampler and its state from round to round.
///
/// # Example
/// ```
/// # use evenhand_fairness::{Sampler, SamplerKind};
/// # use rand::SeedableRng;
/// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
/// let mut sampler = Sampler::new(SamplerKind::Credit);
/// let drawn = sampler.draw(&[0.5, 0.3, 0.2], 2, &mut rng);
/// assert_eq!(drawn.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampler {
    kind: SamplerKind,
    credits: Vec<f64>,
}

impl Sampler {
    /// A sampler before its first draw.
    pub fn new(kind: SamplerKind) -> Self {
        Self { kind, credits: Vec::new() }
    }

    /// The kind.
    pub fn kind(&self) -> SamplerKind {
        self.kind
    }

    /// The credit of each node; empty unless the kind is [`SamplerKind::Credit`].
    pub fn credits(&self) -> &[f64] {
        &self.credits
    }

    /// Charges a node `amount` credit for what it had beside its draws. All that can be drawn share the proceeds: the mean
    /// credit stays what it is, and with it what a newcomer's first credit is worth.
    pub fn charge(&mut self, node: usize, amount: f64, drawable: &[bool]) {
        if self.kind != SamplerKind::Credit || node >= self.credits.len() {
            return;
        }
        self.credits[node] -= amount;
        let sharing = drawable.iter().filter(|drawable| **drawable).count();
        let share = if sharing == 0 { 0.0 } else { amount / sharing as f64 };
        for (credit, _) in self.credits.iter_mut().zip(drawable).filter(|(_, drawable)| **drawable) {
            *credit += share;
        }
    }

    /// Draws k nodes by their sampling probabilities ϱ: distinct indices in ascending order, exactly k
    /// of them except with replacement, where at most k are; fewer if fewer have a probability. A node of
    /// probability 0 is never drawn: give that to a node that cannot be reached.
    ///
    /// Index i has to mean the same node in every call.
    pub fn draw(&mut self, probabilities: &[f64], k: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
        match self.kind {
            SamplerKind::WithReplacement => with_replacement::draw(probabilities, k, rng),
            SamplerKind::WithoutReplacement => without_replacement::draw(probabilities, k, rng),
            SamplerKind::Credit => credit::draw(&mut self.credits, probabilities, k, rng),
        }
    }

    /// The same among `present` nodes only; an absent node neither gains nor loses credit. If the present
    /// have no probability left between them (a low temperature gave it all to nodes that are away),
    /// they are drawn as equals.
    pub fn draw_among(
        &mut self,
        probabilities: &[f64],
        present: &[usize],
        k: usize,
        rng: &mut ChaCha8Rng,
    ) -> Vec<usize> {
        let left = present.iter().any(|&node| probabilities[node] > 0.0);
        let mut among = vec![0.0; probabilities.len()];
        for &node in present {
            among[node] = if left { probabilities[node] } else { 1.0 };
        }
        self.draw(&among, k, rng)
    }
}
