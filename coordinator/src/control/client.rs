//! The operator's side of the socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use evenhand_protocol::exit::Exit;

use super::{Reply, Request, Status, socket};

/// Why a running coordinator did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody listens.
    #[error("no coordinator runs on this state: {0}")]
    NotRunning(#[source] std::io::Error),
    /// The connection broke.
    #[error("the coordinator did not answer: {0}")]
    Io(#[from] std::io::Error),
    /// Its answer makes no sense.
    #[error("the coordinator's answer cannot be read: {0}; is it of another version?")]
    Reply(#[from] serde_json::Error),
    /// It would not.
    #[error("{0}")]
    Refused(String),
}

/// Whether a coordinator runs on `folder`.
pub fn runs(folder: &Path) -> bool {
    UnixStream::connect(socket(folder)).is_ok()
}

/// Asks the coordinator that runs on `folder`, and waits for its answer.
pub fn ask(folder: &Path, request: &Request) -> Result<Status, ControlError> {
    let mut stream = UnixStream::connect(socket(folder)).map_err(ControlError::NotRunning)?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    match serde_json::from_str(&answer)? {
        Reply::Status(status) => Ok(*status),
        Reply::Refused(why) => Err(ControlError::Refused(why)),
    }
}

impl ControlError {
    /// What the program tells the shell.
    pub fn exit(&self) -> Exit {
        match self {
            Self::NotRunning(_) | Self::Io(_) => Exit::Broker,
            Self::Reply(_) => Exit::Data,
            Self::Refused(_) => Exit::Usage,
        }
    }
}
