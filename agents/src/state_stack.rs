//! The state that an agent acts on: its newest frames.

use std::collections::VecDeque;

use crate::environment::FrameShape;
use crate::replay_memory::add_frame;

/// The newest frames of an episode; those from before it are black.
#[derive(Debug, Clone)]
pub(crate) struct StateStack {
    shape: FrameShape,
    frames: VecDeque<Vec<u8>>,
}

impl StateStack {
    /// A state before any episode.
    pub(crate) fn new(shape: FrameShape) -> Self {
        Self { shape, frames: VecDeque::with_capacity(shape.stacked) }
    }

    /// An episode begins with this frame.
    pub(crate) fn begin(&mut self, frame: &[u8]) {
        self.frames.clear();
        self.push(frame);
    }

    /// The next frame.
    pub(crate) fn push(&mut self, frame: &[u8]) {
        let mut kept = if self.frames.len() == self.shape.stacked { self.frames.pop_front() } else { None };
        let mut newest = kept.take().unwrap_or_default();
        newest.clear();
        newest.extend_from_slice(frame);
        self.frames.push_back(newest);
    }

    /// Writes the state as numbers from 0 to 1.
    pub(crate) fn write(&self, state: &mut Vec<f32>) {
        state.clear();
        state.resize((self.shape.stacked - self.frames.len()) * self.shape.bytes(), 0.0);
        self.frames.iter().for_each(|frame| add_frame(frame, state));
    }
}
