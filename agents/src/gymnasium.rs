//! Environments as processes of their own, behind a pipe: Atari and whatever else Gymnasium has.
//!
//! The process is a program of the user's, such as `agents/gymnasium_pipe.py` under a Python of theirs; nothing of it is
//! linked. It writes a header first: the bytes `EVG1`, then channels, rows, columns, stacked frames and actions as 32-bit
//! numbers. A request is one byte, 255 for a reset or an action; the answer is the reward as a 32-bit float, one byte for
//! the end of the episode (0 goes on, 1 terminated, 2 truncated), and the frame. All numbers are little-endian.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::environment::{Environment, EnvironmentError, EnvironmentStep, EpisodeEnd, FrameShape};

/// A program for Python that shows Atari games and environments of Gymnasium: `python3 -c SCRIPT atari breakout`.
pub const SCRIPT: &str = include_str!("../gymnasium_pipe.py");

const MAGIC: [u8; 4] = *b"EVG1";
const RESET: u8 = u8::MAX;
/// Numbers of one state, at most: four colour pictures of 210 × 160 are 403,200.
const STATE_MAX: usize = 1 << 22;
/// Actions, at most: the byte of a reset is not one of them.
const ACTIONS_MAX: usize = 255;
/// Starts of the process in a row without an answer, before the environment is given up.
const STARTS_MAX: u32 = 3;

/// A process that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PipeError {
    /// It cannot be started.
    #[error(
        "cannot start the environment {name:?}: {cause}; name a program that speaks the protocol of docs/games.md"
    )]
    Start {
        /// Its name.
        name: String,
        /// The system's error.
        cause: io::Error,
    },
    /// It ended, or wrote something else.
    #[error(
        "the environment {name:?} ended or wrote something else ({cause}); its own messages are on stderr"
    )]
    Broken {
        /// Its name.
        name: String,
        /// The system's error.
        cause: io::Error,
    },
    /// Its header cannot be used.
    #[error("the environment {name:?} announces {what}; see docs/games.md for what a program must write")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong.
        what: &'static str,
    },
    /// Started again, it has another shape.
    #[error("the environment {name:?} has other frames or actions after a restart than before")]
    Changed {
        /// Its name.
        name: String,
    },
}

/// An environment in a process of its own. A process that ends is started again, and the episode counts as cut off.
pub struct GymnasiumProcess {
    name: String,
    command: Vec<String>,
    running: Option<PipeProcess>,
    shape: FrameShape,
    actions: usize,
    notice: Option<String>,
    /// Restarts so far; the first is announced.
    restarts: u64,
}

struct PipeProcess {
    child: Child,
    requests: ChildStdin,
    answers: ChildStdout,
}

impl GymnasiumProcess {
    /// Starts a command and reads its header; the name is for messages.
    pub fn start(name: impl Into<String>, command: Vec<String>) -> Result<Self, PipeError> {
        let name = name.into();
        let (running, shape, actions) = start(&name, &command)?;
        Ok(Self { name, command, running: Some(running), shape, actions, notice: None, restarts: 0 })
    }

    /// Restarts so far.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Id of the process, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.child.id())
    }

    fn ask(&mut self, request: u8, frame: &mut [u8]) -> io::Result<EnvironmentStep> {
        let running = self.running.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        running.requests.write_all(&[request])?;
        running.requests.flush()?;
        let mut head = [0; 5];
        running.answers.read_exact(&mut head)?;
        let [a, b, c, d, end] = head;
        let reward = f32::from_le_bytes([a, b, c, d]);
        let end = match end {
            0 => EpisodeEnd::Continues,
            1 => EpisodeEnd::Terminated,
            2 => EpisodeEnd::Truncated,
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "an unknown end of an episode")),
        };
        if !reward.is_finite() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a reward that is no number"));
        }
        running.answers.read_exact(frame)?;
        Ok(EnvironmentStep { reward, end })
    }

    fn restart(&mut self, cause: &io::Error) -> Result<(), PipeError> {
        self.stop();
        let (running, shape, actions) = start(&self.name, &self.command)?;
        self.running = Some(running);
        if (shape, actions) != (self.shape, self.actions) {
            return Err(PipeError::Changed { name: self.name.clone() });
        }
        self.restarts += 1;
        if self.restarts == 1 {
            let name = &self.name;
            self.notice = Some(format!("the environment {name:?} ended ({cause}) and was started again"));
        }
        Ok(())
    }

    fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            // It may have ended by itself.
            let _ended = running.child.kill();
            let _reaped = running.child.wait();
        }
    }
}

impl Drop for GymnasiumProcess {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Environment for GymnasiumProcess {
    fn frame_shape(&self) -> FrameShape {
        self.shape
    }

    fn actions(&self) -> usize {
        self.actions
    }

    fn reset(&mut self, frame: &mut [u8]) -> Result<(), EnvironmentError> {
        for attempt in 1.. {
            match self.ask(RESET, frame) {
                Ok(_) => break,
                Err(cause) if attempt == STARTS_MAX => {
                    return Err(PipeError::Broken { name: self.name.clone(), cause }.into());
                }
                Err(cause) => self.restart(&cause)?,
            }
        }
        Ok(())
    }

    fn step(&mut self, action: usize, frame: &mut [u8]) -> Result<EnvironmentStep, EnvironmentError> {
        let request = match u8::try_from(action) {
            Ok(request) if action < self.actions => request,
            _ => return Err(EnvironmentError::Action { action, actions: self.actions }),
        };
        match self.ask(request, frame) {
            Ok(step) => Ok(step),
            Err(cause) => {
                self.restart(&cause)?;
                // What the action would have led to is not known.
                frame.fill(0);
                Ok(EnvironmentStep { reward: 0.0, end: EpisodeEnd::Truncated })
            }
        }
    }

    fn notice(&mut self) -> Option<String> {
        self.notice.take()
    }
}

fn start(name: &str, command: &[String]) -> Result<(PipeProcess, FrameShape, usize), PipeError> {
    let name = || name.to_owned();
    let fail = |cause| PipeError::Start { name: name(), cause };
    let (program, arguments) = command.split_first().ok_or_else(|| fail(io::ErrorKind::NotFound.into()))?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(fail)?;
    let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(fail(io::ErrorKind::BrokenPipe.into()));
    };
    let mut running = PipeProcess { child, requests, answers };
    let header = read_header(&mut running.answers);
    let (shape, actions) = match header {
        Ok(Ok(header)) => header,
        failed => {
            let _ended = running.child.kill();
            let _reaped = running.child.wait();
            return Err(match failed {
                Ok(Err(what)) => PipeError::Header { name: name(), what },
                Ok(Ok(_)) => PipeError::Broken { name: name(), cause: io::ErrorKind::InvalidData.into() },
                Err(cause) => PipeError::Broken { name: name(), cause },
            });
        }
    };
    Ok((running, shape, actions))
}

/// The header, or what is wrong with it.
fn read_header(answers: &mut impl Read) -> io::Result<Result<(FrameShape, usize), &'static str>> {
    let mut magic = [0; 4];
    answers.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Ok(Err("something else than this protocol"));
    }
    let mut numbers = [0usize; 5];
    for number in &mut numbers {
        let mut bytes = [0; 4];
        answers.read_exact(&mut bytes)?;
        *number = u32::from_le_bytes(bytes) as usize;
    }
    let [channels, rows, columns, stacked, actions] = numbers;
    let len = numbers[..4].iter().try_fold(1usize, |len, number| len.checked_mul(*number));
    Ok(match len {
        Some(1..=STATE_MAX) if (1..=ACTIONS_MAX).contains(&actions) => {
            Ok((FrameShape { channels, rows, columns, stacked }, actions))
        }
        Some(1..=STATE_MAX) => Err("no action, or more than 255"),
        _ => Err("frames without a byte, or larger than they may be"),
    })
}

#[cfg(test)]
mod tests;
