//! The saved state of an agent: memory, weights, moments, counters and generator.

use std::collections::VecDeque;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::agent::{AgentError, DqnAgent};
use crate::environment::FrameShape;
use crate::learning_rule::Moments;
use crate::replay_memory::{ReplayMemory, Slot};

/// The format that is written and read.
const FORMAT: u16 = 1;

#[derive(Serialize, Deserialize)]
struct SavedAgent {
    format: u16,
    shape: FrameShape,
    capacity: usize,
    #[serde(with = "evenhand_protocol::bytes")]
    frames: Vec<u8>,
    slots: Vec<Slot>,
    head: usize,
    #[serde(with = "evenhand_protocol::bytes::f32s")]
    weights: Vec<f32>,
    #[serde(with = "evenhand_protocol::bytes::f32s")]
    target: Vec<f32>,
    #[serde(with = "evenhand_protocol::bytes::f32s")]
    first_moment: Vec<f32>,
    #[serde(with = "evenhand_protocol::bytes::f32s")]
    second_moment: Vec<f32>,
    gradient_steps: u64,
    generator: ChaCha8Rng,
    decisions: u64,
    scores: VecDeque<f64>,
    episodes: u64,
}

/// A saved state that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SavedAgentError {
    /// It is no saved agent.
    #[error("the saved agent cannot be read ({0}); remove the file to begin anew")]
    Malformed(#[source] postcard::Error),
    /// It is of another format.
    #[error("the saved agent has format {found}, not {FORMAT}; remove the file to begin anew")]
    Format {
        /// Its format.
        found: u16,
    },
    /// It is of another game, network or memory.
    #[error("the saved agent has another {what}; use the settings it was saved with, or another file")]
    Other {
        /// What differs.
        what: &'static str,
    },
    /// The agent cannot go on.
    #[error(transparent)]
    Agent(#[from] AgentError),
}

impl DqnAgent {
    /// Its state, from which [`restore`](Self::restore) continues.
    pub fn save(&self) -> Vec<u8> {
        let saved = SavedAgent {
            format: FORMAT,
            shape: self.memory.shape(),
            capacity: self.memory.capacity(),
            frames: self.memory.frames.clone(),
            slots: self.memory.slots.clone(),
            head: self.memory.head,
            weights: self.weights.clone(),
            target: self.target.clone(),
            first_moment: self.moments.first.clone(),
            second_moment: self.moments.second.clone(),
            gradient_steps: self.moments.steps,
            generator: self.generator.clone(),
            decisions: self.decisions,
            scores: self.scores.clone(),
            episodes: self.episodes,
        };
        // Writing to memory fails for no value of these types.
        postcard::to_allocvec(&saved).unwrap_or_default()
    }

    /// Takes over a saved state; the game begins a new episode. After an error nothing has changed.
    pub fn restore(&mut self, saved: &[u8]) -> Result<(), SavedAgentError> {
        let (found, _) = postcard::take_from_bytes::<u16>(saved).map_err(SavedAgentError::Malformed)?;
        if found != FORMAT {
            return Err(SavedAgentError::Format { found });
        }
        let saved: SavedAgent = postcard::from_bytes(saved).map_err(SavedAgentError::Malformed)?;
        let other = |what| Err(SavedAgentError::Other { what });
        let shape = self.memory.shape();
        if saved.shape != shape {
            return other("shape of frames");
        }
        if saved.capacity != self.memory.capacity() {
            return other("size of the memory");
        }
        let dim = self.weights.len();
        let moments = [saved.first_moment.len(), saved.second_moment.len()];
        if [saved.weights.len(), saved.target.len()] != [dim; 2]
            || moments.iter().any(|len| ![0, dim].contains(len))
        {
            return other("network");
        }
        let slots = saved.slots.len();
        let is_whole = slots <= saved.capacity
            && saved.frames.len() == slots * shape.bytes()
            && saved.head == if slots < saved.capacity { slots } else { saved.head % saved.capacity };
        if !is_whole {
            return other("number of frames");
        }
        let mut memory = ReplayMemory::new(shape, saved.capacity);
        (memory.frames, memory.slots, memory.head) = (saved.frames, saved.slots, saved.head);
        self.memory = memory;
        (self.weights, self.target) = (saved.weights, saved.target);
        self.moments =
            Moments { first: saved.first_moment, second: saved.second_moment, steps: saved.gradient_steps };
        (self.generator, self.decisions) = (saved.generator, saved.decisions);
        (self.scores, self.episodes) = (saved.scores, saved.episodes);
        Ok(self.resume()?)
    }
}
