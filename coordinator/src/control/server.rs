//! The server side of the control socket.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::{self, JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::{ControlReply, ControlRequest, FederationStatus, socket_path};
use crate::joining::rotation;
use crate::shell::CoordinatorHandle;
use crate::store::{Store, StoreError};

/// The longest request that is read.
const REQUEST_BYTES_MAX: u64 = 4 << 20;

/// The limit for reading the request, and for writing the reply.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause after a failed accept, such as for too many open files.
const ACCEPT_BACKOFF: Duration = Duration::from_secs(1);

/// The limit for the last replies.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The control socket of a running coordinator.
#[derive(Debug)]
pub struct ControlServer {
    path: PathBuf,
    stop: oneshot::Sender<()>,
    listening: JoinHandle<()>,
}

impl ControlServer {
    /// Listens in the folder of `store`, whose lock makes this the only process that does.
    pub fn start(store: Arc<Store>, handle: CoordinatorHandle) -> io::Result<Self> {
        let path = socket_path(store.folder());
        // A coordinator that was killed left its socket behind.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        let (stop, stopped) = oneshot::channel();
        let listening = task::spawn(listen(listener, stopped, store, handle));
        Ok(Self { path, stop, listening })
    }

    /// Stops listening, after the replies to accepted requests.
    pub async fn close(self) {
        // The next coordinator removes it as well.
        let _left_behind = fs::remove_file(&self.path);
        let _ended = self.stop.send(());
        let _late = timeout(SHUTDOWN_TIMEOUT, self.listening).await;
    }
}

async fn listen(
    listener: UnixListener,
    mut stopped: oneshot::Receiver<()>,
    store: Arc<Store>,
    handle: CoordinatorHandle,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&store), handle.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "control socket: accept failed");
                    sleep(ACCEPT_BACKOFF).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = &mut stopped => break,
        }
    }
    connections.join_all().await;
}

async fn serve(mut stream: UnixStream, store: Arc<Store>, handle: CoordinatorHandle) {
    let (from, mut to) = stream.split();
    let mut line = String::new();
    let mut from = BufReader::new(from.take(REQUEST_BYTES_MAX));
    let Ok(Ok(_)) = timeout(IDLE_TIMEOUT, from.read_line(&mut line)).await else { return };
    let reply = match serde_json::from_str(&line) {
        Ok(request) => reply_to(request, store, &handle).await,
        Err(error) => ControlReply::Refused(format!("the request cannot be read: {error}")),
    };
    let mut line = serde_json::to_vec(&reply).expect("plain data always encodes");
    line.push(b'\n');
    // The operator may have given up.
    let _unsent = timeout(IDLE_TIMEOUT, to.write_all(&line)).await;
}

async fn reply_to(request: ControlRequest, store: Arc<Store>, handle: &CoordinatorHandle) -> ControlReply {
    let done = match request {
        ControlRequest::Status => Ok(()),
        ControlRequest::Command(command) => handle.command(command).await.map_err(|why| why.to_string()),
        ControlRequest::Invite { invitees, again } => {
            handle.invite(invitees, again).await.map_err(|why| why.to_string())
        }
        ControlRequest::Revoke(node) => {
            tracing::info!("operator command: revoke {node}");
            handle.revoke(node).await.map_err(|why| why.to_string())
        }
        ControlRequest::RotateKey { overlap_days } => {
            rotation::rotate(store.folder(), handle, overlap_days).await
        }
        ControlRequest::Backup(to) => {
            let store = Arc::clone(&store);
            match task::spawn_blocking(move || store.back_up(&to)).await {
                Ok(done) => done.map_err(|error| error.to_string()),
                Err(panic) => Err(panic.to_string()),
            }
        }
    };
    if let Err(why) = done {
        return ControlReply::Refused(why);
    }
    let process = Some(std::process::id());
    let last = task::spawn_blocking(move || Ok((store.log()?.last()?, store))).await;
    let (last, store) = match last {
        Ok(Ok(last)) => last,
        Ok(Err(error)) => return ControlReply::Refused(StoreError::to_string(&error)),
        Err(panic) => return ControlReply::Refused(panic.to_string()),
    };
    let known = last.clone();
    let status = match handle.inspect(move |now| FederationStatus::new(now, known.as_ref(), process)).await {
        Some(status) => Ok(status),
        // It has just ended; its last state is durable.
        None => store.federation().map(|ended| FederationStatus::new(&ended, last.as_ref(), process)),
    };
    match status {
        Ok(status) => ControlReply::Status(Box::new(status)),
        Err(error) => ControlReply::Refused(error.to_string()),
    }
}
