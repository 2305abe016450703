//! Who measures what in which round, and how badly.
//!
//! A [`Stream`] is a pure function of the pool, the setup and its seed: every node, round and sample can be asked for at any
//! time, in any order, from any thread, beside what was true.

mod conduct;
mod deal;
mod error;
mod noise;
mod quality;
mod source;

use std::sync::Arc;

use evenhand_models::{Batch, Targets};
use evenhand_node::reading::{Row, Target};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub use conduct::Conduct;
use deal::Deal;
pub use error::StreamError;
use noise::Noise;
pub use source::NodeStream;

use crate::data::{Answers, Pool};
use crate::experiment::setup::Setup;

/// What the nodes of one trial measure.
#[derive(Debug)]
pub struct Stream {
    pool: Arc<Pool>,
    seed: u64,
    zetas: Vec<f64>,
    conducts: Vec<Conduct>,
    /// What each node measures in each round.
    measured: Deal,
    /// What the models are scored on, where it is not what the nodes measure.
    scored: Option<Deal>,
    /// By position in the deal: whether the sample is spoilt.
    spoilt: Vec<bool>,
    noise: Option<Noise>,
}

/// What all nodes measure in one round, as it truly was.
#[derive(Debug, Clone, PartialEq)]
pub struct Clean {
    /// The samples.
    pub batch: Batch,
    /// By sample: mean and deviation that bring a value back to what was measured; empty for classes.
    pub scales: Vec<(f32, f32)>,
}

impl Stream {
    /// Deals the pool out, and decides what will be spoilt.
    pub fn new(pool: Arc<Pool>, setup: &Setup) -> Result<Self, StreamError> {
        error::check(&pool, setup)?;
        let classes = quality::classes(&pool, setup);
        let (measured, scored) = match &classes {
            Some(classes) => (Deal::by_classes(&pool, setup, classes)?, Some(Deal::new(&pool, setup))),
            None => (Deal::new(&pool, setup), None),
        };
        let zetas = quality::zetas(&pool, setup, &measured, classes.as_deref());
        let conducts = conduct::conducts(setup, &zetas);
        let noise = Noise::of(&pool, setup);
        let spoilt = match noise {
            Some(_) => noise::spoilt(setup, &zetas, &measured),
            None => vec![false; measured.len()],
        };
        Ok(Self { pool, seed: setup.seed, zetas, conducts, measured, scored, spoilt, noise })
    }

    /// ζ by node: the higher, the worse are its data, so that a fair run has ρ > 0.
    pub fn zetas(&self) -> &[f64] {
        &self.zetas
    }

    /// The largest batch of a node.
    pub fn batch(&self, node: usize) -> usize {
        (1..=self.measured.rounds()).map(|round| self.measured.of(node, round).len()).max().unwrap_or(0)
    }

    /// How often the pool is gone through: above 1, samples are seen again, in another order.
    pub fn passes(&self) -> usize {
        self.measured.passes
    }

    /// Rounds that can be asked for: those of the setup, and one more to look ahead.
    pub fn rounds(&self) -> u32 {
        self.measured.rounds()
    }

    /// The shape of one sample.
    pub fn shape(&self) -> &[usize] {
        &self.pool.shape
    }

    /// What a node measures in a round, counted from 1; nothing beyond [`rounds`](Self::rounds).
    pub fn seen(&self, node: usize, round: u32) -> Vec<Row> {
        let mut generator = generator(self.seed, Purpose::Noise, node, round);
        let spoilt = &self.spoilt[self.measured.range(node, round)];
        let samples = self.measured.of(node, round).iter().zip(spoilt);
        let rows = samples.map(|(at, spoilt)| {
            let mut row = self.row(*at as usize);
            if let (Some(noise), true) = (&self.noise, *spoilt) {
                noise.spoil(&mut row, &mut generator);
            }
            row
        });
        rows.collect()
    }

    /// What all nodes measure in a round, as it truly was. Where nodes see only some classes: as many samples of all.
    pub fn clean(&self, round: u32) -> Clean {
        let all = self.scored.as_ref().unwrap_or(&self.measured).all(round);
        let at = all.iter().map(|at| *at as usize);
        let inputs = at.clone().flat_map(|at| self.pool.sample(at)).copied().collect();
        let (targets, scales) = match &self.pool.answers {
            Answers::Classes { of, .. } => (Targets::Classes(at.map(|at| of[at]).collect()), Vec::new()),
            Answers::Values { of, scales } => {
                (Targets::Values(at.clone().map(|at| of[at]).collect()), at.map(|at| scales[at]).collect())
            }
        };
        let shape = std::iter::once(all.len()).chain(self.pool.shape.iter().copied()).collect();
        Clean { batch: Batch { inputs, shape, targets }, scales }
    }

    /// Whether and when a node takes part.
    pub fn conduct(&self, node: usize) -> Conduct {
        self.conducts[node]
    }

    fn row(&self, at: usize) -> Row {
        let target = match &self.pool.answers {
            Answers::Classes { of, .. } => Target::Class(of[at]),
            Answers::Values { of, .. } => Target::Value(of[at]),
        };
        Row { features: self.pool.sample(at).to_vec(), target }
    }
}

/// What a random number is for: each purpose, node and round has numbers of its own, whoever asks first.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Order = 1,
    Classes = 2,
    Spoilt = 3,
    Noise = 4,
    Away = 5,
    Silent = 6,
    Stop = 7,
}

fn generator(seed: u64, purpose: Purpose, node: usize, round: u32) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(((purpose as u64) << 56) | ((node as u64) << 32) | u64::from(round));
    generator
}

#[cfg(test)]
mod tests;
