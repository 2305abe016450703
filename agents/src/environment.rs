//! Environments: what an agent acts in.

use crate::gymnasium::PipeError;

/// The shape of one frame: channels, rows and columns of bytes, 0 for black and 255 for white.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FrameShape {
    /// Channels of one frame.
    pub channels: usize,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Frames that make a state, the newest last: one where a frame shows everything that matters.
    pub stacked: usize,
}

impl FrameShape {
    /// Bytes of one frame.
    pub fn bytes(&self) -> usize {
        self.channels * self.rows * self.columns
    }

    /// Numbers of one state.
    pub fn state_len(&self) -> usize {
        self.stacked * self.bytes()
    }

    /// The shape of a batch of states, as the network takes it.
    pub fn batch_shape(&self, states: usize) -> [usize; 4] {
        [states, self.stacked * self.channels, self.rows, self.columns]
    }
}

/// How an episode goes on after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum EpisodeEnd {
    /// It goes on.
    Continues,
    /// It ended by the rules: nothing follows, so nothing is to be expected from the next state.
    Terminated,
    /// It was cut off, by a limit or a restart: what would have followed is not known.
    Truncated,
}

impl EpisodeEnd {
    /// True if the next step needs a reset first.
    pub fn is_over(self) -> bool {
        self != Self::Continues
    }
}

/// The result of one action.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnvironmentStep {
    /// The reward as the game counts it.
    pub reward: f32,
    /// How the episode goes on.
    pub end: EpisodeEnd,
}

/// A world with discrete actions that shows itself in frames.
///
/// ```
/// use evenhand_agents::{Environment, GridGame};
///
/// let mut game = GridGame::Breakout.environment(7);
/// let mut frame = vec![0; game.frame_shape().bytes()];
/// game.reset(&mut frame)?;
/// let step = game.step(1, &mut frame)?;
/// assert_eq!((step.reward, game.actions()), (0.0, 6));
/// # Ok::<(), evenhand_agents::EnvironmentError>(())
/// ```
pub trait Environment: Send {
    /// The shape of its frames.
    fn frame_shape(&self) -> FrameShape;

    /// Number of actions, counted from 0.
    fn actions(&self) -> usize;

    /// Begins an episode and writes its first frame.
    fn reset(&mut self, frame: &mut [u8]) -> Result<(), EnvironmentError>;

    /// Acts and writes the frame that follows.
    fn step(&mut self, action: usize, frame: &mut [u8]) -> Result<EnvironmentStep, EnvironmentError>;

    /// A sentence about something that went wrong and was put right since the last call.
    fn notice(&mut self) -> Option<String> {
        None
    }
}

impl<E: Environment + ?Sized> Environment for Box<E> {
    fn frame_shape(&self) -> FrameShape {
        (**self).frame_shape()
    }

    fn actions(&self) -> usize {
        (**self).actions()
    }

    fn reset(&mut self, frame: &mut [u8]) -> Result<(), EnvironmentError> {
        (**self).reset(frame)
    }

    fn step(&mut self, action: usize, frame: &mut [u8]) -> Result<EnvironmentStep, EnvironmentError> {
        (**self).step(action, frame)
    }

    fn notice(&mut self) -> Option<String> {
        (**self).notice()
    }
}

/// An environment that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// There is no such action.
    #[error("action {action} of {actions}; choose a network with as many outputs as the game has actions")]
    Action {
        /// The action.
        action: usize,
        /// Number of actions.
        actions: usize,
    },
    /// The process of the environment failed for good.
    #[error(transparent)]
    Pipe(#[from] PipeError),
}
