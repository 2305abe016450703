//! Replay memory: the newest transitions, every frame stored once.

use rand::{Rng, RngExt};

use crate::environment::{EpisodeEnd, FrameShape};

/// Attempts to find a transition that can be sampled; episodes of one step that were all cut off have none.
const ATTEMPTS_MAX: usize = 1000;

/// The newest transitions of an agent.
///
/// A slot holds the frame that was seen, the action taken on it, the clipped reward, and how the episode went on. The
/// state of a slot is made of its frame and those before it in the same episode; frames from before the episode are black.
/// The state after it is that of the next slot. So a frame is stored once, though it takes part in up to eight states.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayMemory {
    shape: FrameShape,
    capacity: usize,
    pub(crate) frames: Vec<u8>,
    pub(crate) slots: Vec<Slot>,
    /// The slot that is written next.
    pub(crate) head: usize,
}

/// All of a transition but its frame.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Slot {
    pub(crate) action: u8,
    pub(crate) reward: i8,
    pub(crate) end: EpisodeEnd,
    /// The first frame of an episode.
    pub(crate) begins: bool,
}

/// A transition that was seen, without its frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Experience {
    /// The action taken.
    pub action: usize,
    /// The clipped reward: −1, 0 or 1.
    pub reward: i8,
    /// How the episode went on.
    pub end: EpisodeEnd,
}

/// Sampled transitions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TransitionSample {
    /// The states, one after another, each number from 0 to 1.
    pub states: Vec<f32>,
    /// The states that followed.
    pub next_states: Vec<f32>,
    /// The actions taken.
    pub actions: Vec<u32>,
    /// The clipped rewards.
    pub rewards: Vec<f32>,
    /// True where the episode ended by its rules: no state followed.
    pub terminated: Vec<bool>,
}

impl ReplayMemory {
    /// An empty memory for so many transitions; it grows as they come.
    pub fn new(shape: FrameShape, capacity: usize) -> Self {
        // A transition needs the frame after it, and those before it in its state.
        let capacity = capacity.max(shape.stacked + 1);
        Self { shape, capacity, frames: Vec::new(), slots: Vec::new(), head: 0 }
    }

    /// Number of transitions held.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The most transitions that it holds.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The shape of its frames.
    pub fn shape(&self) -> FrameShape {
        self.shape
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.frames.capacity() + self.slots.capacity() * size_of::<Slot>()
    }

    /// Adds a transition: the frame that was seen, whether an episode began with it, and what came of it.
    pub fn push(&mut self, frame: &[u8], begins: bool, experience: Experience) {
        let Experience { action, reward, end } = experience;
        let slot = Slot { action: action as u8, reward, end, begins };
        let bytes = self.shape.bytes();
        if self.slots.len() < self.capacity {
            if self.slots.is_empty() {
                self.reserve();
            }
            self.frames.extend_from_slice(&frame[..bytes]);
            self.slots.push(slot);
        } else {
            self.frames[self.head * bytes..][..bytes].copy_from_slice(&frame[..bytes]);
            self.slots[self.head] = slot;
        }
        self.head = (self.head + 1) % self.capacity;
    }

    /// Gives the newest transition its result, which is known after its frame.
    pub fn conclude(&mut self, reward: i8, end: EpisodeEnd) {
        if let Some(newest) = self.place(self.len().wrapping_sub(1)) {
            self.slots[newest] = Slot { reward, end, ..self.slots[newest] };
        }
    }

    /// All at once, so that growing never needs a second copy.
    fn reserve(&mut self) {
        self.frames.reserve_exact(self.capacity * self.shape.bytes());
        self.slots.reserve_exact(self.capacity);
    }

    /// Marks the newest transition as cut off: what would have followed is not known.
    pub fn cut_off(&mut self) {
        if let Some(newest) = self.place(self.len().wrapping_sub(1))
            && self.slots[newest].end == EpisodeEnd::Continues
        {
            self.slots[newest].end = EpisodeEnd::Truncated;
        }
    }

    /// Transitions drawn uniformly, those excepted whose states are not all there; none if there are too few.
    pub fn sample(&self, count: usize, generator: &mut impl Rng) -> Option<TransitionSample> {
        let mut sample = TransitionSample::default();
        let state_len = self.shape.state_len();
        sample.states.reserve_exact(count * state_len);
        sample.next_states.reserve_exact(count * state_len);
        for _ in 0..count {
            let age = self.draw(generator)?;
            self.add_state(age, &mut sample.states);
            let slot = self.slots[self.place(age)?];
            let terminated = slot.end == EpisodeEnd::Terminated;
            if terminated {
                sample.next_states.resize(sample.next_states.len() + state_len, 0.0);
            } else {
                self.add_state(age + 1, &mut sample.next_states);
            }
            sample.actions.push(slot.action.into());
            sample.rewards.push(slot.reward.into());
            sample.terminated.push(terminated);
        }
        Some(sample)
    }

    /// The number of a transition that can be sampled, counted from the oldest.
    fn draw(&self, generator: &mut impl Rng) -> Option<usize> {
        let first = if self.len() < self.capacity { 0 } else { self.shape.stacked - 1 };
        let count = self.len().checked_sub(first + 1).filter(|count| *count > 0)?;
        (0..ATTEMPTS_MAX)
            .map(|_| first + generator.random_range(0..count))
            .find(|age| self.place(*age).is_some_and(|place| self.slots[place].end != EpisodeEnd::Truncated))
    }

    /// The transition of this number, counted from the oldest.
    pub fn experience(&self, age: usize) -> Option<Experience> {
        let slot = self.slots[self.place(age)?];
        Some(Experience { action: slot.action.into(), reward: slot.reward, end: slot.end })
    }

    /// The state of this transition, counted from the oldest.
    pub fn state(&self, age: usize) -> Vec<f32> {
        let mut state = Vec::with_capacity(self.shape.state_len());
        self.add_state(age, &mut state);
        state
    }

    fn place(&self, age: usize) -> Option<usize> {
        let oldest = if self.slots.len() < self.capacity { 0 } else { self.head };
        (age < self.slots.len()).then(|| (oldest + age) % self.capacity)
    }

    fn add_state(&self, age: usize, state: &mut Vec<f32>) {
        let bytes = self.shape.bytes();
        let mut known = 1;
        while known < self.shape.stacked
            && age + 1 > known
            && self.place(age + 1 - known).is_some_and(|place| !self.slots[place].begins)
        {
            known += 1;
        }
        let black = (self.shape.stacked - known) * bytes;
        state.resize(state.len() + black, 0.0);
        for back in (0..known).rev() {
            let place = age.checked_sub(back).and_then(|age| self.place(age)).unwrap_or_default();
            add_frame(&self.frames[place * bytes..][..bytes], state);
        }
    }
}

/// A frame as numbers from 0 to 1.
pub(crate) fn add_frame(frame: &[u8], state: &mut Vec<f32>) {
    const SCALE: f32 = 1.0 / u8::MAX as f32;
    state.extend(frame.iter().map(|byte| f32::from(*byte) * SCALE));
}

#[cfg(test)]
mod tests;
