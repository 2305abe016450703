//! The coordinator's side of the socket.

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

use super::{Reply, Request, Status, socket};
use crate::shell::Handle;
use crate::store::{Store, StoreError};

/// The longest request that is read.
const REQUEST_BYTES_MAX: u64 = 64 << 10;

/// How long an operator may take to say what is wanted, and again to hear the reply.
const PATIENCE: Duration = Duration::from_secs(5);

/// Rest after an error that affects the listener, such as too many open files.
const REST: Duration = Duration::from_secs(1);

/// How long the last replies may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// Listens on the socket of a state folder.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    stop: oneshot::Sender<()>,
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
        let (stop, stopped) = oneshot::channel();
        let listening = task::spawn(listen(listener, stopped, store, handle));
        Ok(Self { path, stop, listening })
    }

    /// Ends when everybody who was heard has a reply.
    pub async fn close(self) {
        // Whoever comes next removes it as well.
        let _left_behind = fs::remove_file(&self.path);
        let _ended = self.stop.send(());
        let _late = timeout(FAREWELL, self.listening).await;
    }
}

async fn listen(
    listener: UnixListener,
    mut stopped: oneshot::Receiver<()>,
    store: Arc<Store>,
    handle: Handle,
) {
    let mut talks = JoinSet::new();
    loop {
        tokio::select! {
            heard = listener.accept() => match heard {
                Ok((stream, _)) => {
                    talks.spawn(serve(stream, Arc::clone(&store), handle.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "an operator could not be heard");
                    sleep(REST).await;
                }
            },
            Some(_) = talks.join_next() => {}
            _ = &mut stopped => break,
        }
    }
    talks.join_all().await;
}

async fn serve(mut stream: UnixStream, store: Arc<Store>, handle: Handle) {
    let (from, mut to) = stream.split();
    let mut line = String::new();
    let mut from = BufReader::new(from.take(REQUEST_BYTES_MAX));
    let Ok(Ok(_)) = timeout(PATIENCE, from.read_line(&mut line)).await else { return };
    let reply = match serde_json::from_str(&line) {
        Ok(request) => answer(request, store, &handle).await,
        Err(error) => Reply::Refused(format!("the request cannot be read: {error}")),
    };
    let mut line = serde_json::to_vec(&reply).expect("plain data always encodes");
    line.push(b'\n');
    // If the operator is gone, nobody waits.
    let _unheard = timeout(PATIENCE, to.write_all(&line)).await;
}

async fn answer(request: Request, store: Arc<Store>, handle: &Handle) -> Reply {
    let done = match request {
        Request::Status => Ok(()),
        Request::Command(command) => handle.command(command).await.map_err(|why| why.to_string()),
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
    let process = Some(std::process::id());
    let last = task::spawn_blocking(move || Ok((store.log()?.last()?, store))).await;
    let (last, store) = match last {
        Ok(Ok(last)) => last,
        Ok(Err(error)) => return Reply::Refused(StoreError::to_string(&error)),
        Err(panic) => return Reply::Refused(panic.to_string()),
    };
    let known = last.clone();
    let status = match handle.look(move |now| Status::new(now, known.as_ref(), process)).await {
        Some(status) => Ok(status),
        // It has just ended; what it came to is durable.
        None => store.federation().map(|ended| Status::new(&ended, last.as_ref(), process)),
    };
    match status {
        Ok(status) => Reply::Status(Box::new(status)),
        Err(error) => Reply::Refused(error.to_string()),
    }
}
