//! The client side of the control socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use evenhand_program::exit::Exit;

use super::{ControlReply, ControlRequest, FederationStatus, socket_path};

/// The cause of a failed request.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// There is no coordinator on the socket.
    #[error("no coordinator runs on this state: {0}")]
    NotRunning(#[source] std::io::Error),
    /// The connection failed.
    #[error("the coordinator did not answer: {0}")]
    Io(#[from] std::io::Error),
    /// The reply is malformed.
    #[error("the coordinator's reply cannot be read: {0}; is it of another version?")]
    Reply(#[from] serde_json::Error),
    /// The request was refused.
    #[error("{0}")]
    Refused(String),
}

/// True if a coordinator runs on `folder`.
pub fn is_running(folder: &Path) -> bool {
    UnixStream::connect(socket_path(folder)).is_ok()
}

/// Sends a request to the coordinator that runs on `folder`; returns the status after it.
pub fn send(folder: &Path, request: &ControlRequest) -> Result<FederationStatus, ControlError> {
    let mut stream = UnixStream::connect(socket_path(folder)).map_err(ControlError::NotRunning)?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply)?;
    match serde_json::from_str(&reply)? {
        ControlReply::Status(status) => Ok(*status),
        ControlReply::Refused(why) => Err(ControlError::Refused(why)),
    }
}

impl ControlError {
    /// The exit code of a program that fails with it.
    pub fn exit(&self) -> Exit {
        match self {
            Self::NotRunning(_) | Self::Io(_) => Exit::Broker,
            Self::Reply(_) => Exit::Data,
            Self::Refused(_) => Exit::Usage,
        }
    }
}
