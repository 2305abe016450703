//! Who receives the latest model this round.

mod credit;
mod with_replacement;
mod without_replacement;

pub use credit::inclusion_probabilities;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// How k nodes are drawn.
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

    /// Draws k nodes by their sampling probabilities ϱ: distinct indices in ascending order, exactly
    /// min(k, N) of them except with replacement, where at most so many are.
    pub fn draw(&mut self, probabilities: &[f64], k: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
        match self.kind {
            SamplerKind::WithReplacement => with_replacement::draw(probabilities, k, rng),
            SamplerKind::WithoutReplacement => without_replacement::draw(probabilities, k, rng),
            SamplerKind::Credit => credit::draw(&mut self.credits, probabilities, k, rng),
        }
    }

    /// The same among `present` nodes only, given in ascending order; who is away neither gains nor
    /// loses credit.
    pub fn draw_among(
        &mut self,
        probabilities: &[f64],
        present: &[usize],
        k: usize,
        rng: &mut ChaCha8Rng,
    ) -> Vec<usize> {
        let shares: Vec<f64> = present.iter().map(|&node| probabilities[node]).collect();
        let places = match self.kind {
            SamplerKind::WithReplacement => with_replacement::draw(&shares, k, rng),
            SamplerKind::WithoutReplacement => without_replacement::draw(&shares, k, rng),
            SamplerKind::Credit => {
                while self.credits.len() < probabilities.len() {
                    self.credits.push(rng.random());
                }
                let mut credits: Vec<f64> = present.iter().map(|&node| self.credits[node]).collect();
                let places = credit::draw(&mut credits, &shares, k, rng);
                present.iter().zip(credits).for_each(|(&node, credit)| self.credits[node] = credit);
                places
            }
        };
        places.into_iter().map(|place| present[place]).collect()
    }
}
