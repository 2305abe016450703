//! The coordinator's side of the socket.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use evenhand_protocol::message::Phase;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{self, JoinHandle};

use super::{Reply, Request, Status, socket};
use crate::federation::{Command, Federation};
use crate::shell::Handle;
use crate::store::Store;

/// The longest request that is read.
const REQUEST_BYTES_MAX: u64 = 64 << 10;

/// Listens on the socket of a state folder until it is dropped.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    listening: JoinHandle<()>,
}

impl Server {
    /// Listens beside `store`, whose lock makes this the only process that may.
    pub fn start(store: Arc<Store>, handle: Handle) -> io::Result<Self> {
        let path = socket(store.folder());
        // One that was killed left its socket behind.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        let listening = tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        task::spawn(serve(stream, Arc::clone(&store), handle.clone()));
                    }
                    Err(error) => tracing::warn!(%error, "an operator could not be heard"),
                }
            }
        });
        Ok(Self { path, listening })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listening.abort();
        // Whoever comes next removes it as well.
        let _left_behind = fs::remove_file(&self.path);
    }
}

async fn serve(mut stream: UnixStream, store: Arc<Store>, handle: Handle) {
    let (from, mut to) = stream.split();
    let mut line = String::new();
    let read = BufReader::new(from.take(REQUEST_BYTES_MAX)).read_line(&mut line).await;
    let reply = match read.map(|_| serde_json::from_str(&line)) {
        Ok(Ok(request)) => answer(request, store, &handle).await,
        Ok(Err(error)) => Reply::Refused(format!("the request cannot be read: {error}")),
        Err(_) => return,
    };
    let mut line = serde_json::to_vec(&reply).expect("plain data always encodes");
    line.push(b'\n');
    // If the operator is gone, nobody waits.
    let _unheard = to.write_all(&line).await;
}

async fn answer(request: Request, store: Arc<Store>, handle: &Handle) -> Reply {
    let ended = || Reply::Refused("the coordinator is ending".into());
    let done = match request {
        Request::Status => Ok(()),
        Request::Command(command) => {
            let asked = command.clone();
            let Some(objection) = handle.look(move |federation| objection(&asked, federation)).await else {
                return ended();
            };
            match objection {
                None => {
                    tracing::info!(?command, "the operator wants something");
                    handle.command(command);
                    Ok(())
                }
                Some(why) => Err(why),
            }
        }
        Request::Backup(to) => {
            let store = Arc::clone(&store);
            match task::spawn_blocking(move || store.back_up(&to)).await {
                Ok(done) => done.map_err(|error| error.to_string()),
                Err(panic) => Err(panic.to_string()),
            }
        }
    };
    if let Err(why) = done {
        return Reply::Refused(why);
    }
    let last = task::spawn_blocking(move || store.log().and_then(|log| log.last())).await;
    let last = last.ok().and_then(Result::ok).flatten();
    let process = std::process::id();
    let status = handle.look(move |federation| Status::new(federation, last.as_ref(), Some(process))).await;
    status.map_or_else(ended, |status| Reply::Status(Box::new(status)))
}

/// Why a command would do nothing.
fn objection(command: &Command, federation: &Federation) -> Option<String> {
    let phase = federation.phase();
    match (command, phase) {
        (_, Phase::Finished | Phase::Failed) => Some("the federation is over".into()),
        (Command::Begin, Phase::Enrolling) => None,
        (Command::Begin, _) => Some("the federation has begun already".into()),
        (Command::Explore, Phase::Enrolling | Phase::Exploring) => {
            Some("contributions are not settled yet; they are being measured anyway".into())
        }
        (Command::Remove(node), _) if !federation.knows(node) => {
            Some(format!("there is no node {node} in this federation"))
        }
        _ => None,
    }
}
