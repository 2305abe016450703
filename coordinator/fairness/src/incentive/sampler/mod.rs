//! Who receives the latest model this round.

mod credit;
mod with_replacement;
mod without_replacement;

pub use credit::{inclusion_probabilities, wait_bound};

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// How k nodes are drawn, as it is written in configurations and on command lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SamplerKind {
    /// The paper's: k independent draws, so at most k distinct nodes.
    #[default]
    WithReplacement,
    /// The published code's: k draws one after the other among those not drawn yet.
    WithoutReplacement,
    /// Ours: the k nodes to which most is owed.
    Credit,
}

impl SamplerKind {
    /// The name in configurations, on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::WithReplacement => "with-replacement",
            Self::WithoutReplacement => "without-replacement",
            Self::Credit => "credit",
        }
    }
}

/// A sampler and what it remembers from round to round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampler {
    kind: SamplerKind,
    credits: Vec<f64>,
}

impl Sampler {
    /// A sampler that owes nobody anything yet.
    pub fn new(kind: SamplerKind) -> Self {
        Self { kind, credits: Vec::new() }
    }

    /// Which kind it is.
    pub fn kind(&self) -> SamplerKind {
        self.kind
    }

    /// What is owed to each node; empty unless the kind is [`SamplerKind::Credit`].
    pub fn credits(&self) -> &[f64] {
        &self.credits
    }

    /// Draws k nodes by their sampling probabilities ϱ: distinct indices in ascending order, exactly k
    /// of them except with replacement, where at most k are; fewer if fewer have a probability. A node of
    /// probability 0 is never drawn, so that is what a node that cannot be reached is to be given.
    ///
    /// Index i has to mean the same node in every call.
    pub fn draw(&mut self, probabilities: &[f64], k: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
        match self.kind {
            SamplerKind::WithReplacement => with_replacement::draw(probabilities, k, rng),
            SamplerKind::WithoutReplacement => without_replacement::draw(probabilities, k, rng),
            SamplerKind::Credit => credit::draw(&mut self.credits, probabilities, k, rng),
        }
    }

    /// The same among `present` nodes only; who is away neither gains nor loses credit. If the present
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
