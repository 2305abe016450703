//! The view, where the run loop writes it and the server reads it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::watch;

use crate::shell::{CoordinatorHandle, FederationObserver, TimedRound};
use crate::view::View;
use evenhand_federation::Federation;

/// A view that is shared; clones show the same.
#[derive(Debug, Clone)]
pub struct Board(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    view: Mutex<View>,
    /// The big answers, made once for all readers of a version.
    nodes: Mutex<(u64, Bytes)>,
    draws: Mutex<(u64, Bytes)>,
    version: watch::Sender<u64>,
}

impl Board {
    /// Shows `view`.
    pub fn new(view: View) -> Self {
        let version = watch::Sender::new(view.version());
        let none = || Mutex::new((u64::MAX, Bytes::new()));
        Self(Arc::new(Inner { view: Mutex::new(view), nodes: none(), draws: none(), version }))
    }

    /// Looks at the view.
    pub fn read<T>(&self, look: impl FnOnce(&View) -> T) -> T {
        look(&locked(&self.0.view))
    }

    /// Changes the view, and tells those who listen.
    pub fn write(&self, change: impl FnOnce(&mut View)) {
        let version = {
            let mut view = locked(&self.0.view);
            change(&mut view);
            view.version()
        };
        self.0.version.send_if_modified(|told| std::mem::replace(told, version) != version);
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    pub(super) fn nodes_json(&self) -> Bytes {
        self.cached(&self.0.nodes, |view| json(&view.nodes()))
    }

    pub(super) fn draws_json(&self) -> Bytes {
        self.cached(&self.0.draws, |view| json(&view.draws()))
    }

    fn cached(&self, cache: &Mutex<(u64, Bytes)>, make: impl FnOnce(&View) -> Bytes) -> Bytes {
        let mut cache = locked(cache);
        let view = locked(&self.0.view);
        if cache.0 != view.version() {
            *cache = (view.version(), make(&view));
        }
        cache.1.clone()
    }
}

pub(super) fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("plain data with text keys always encodes").into()
}

/// A panic elsewhere leaves a view that is at worst one round behind.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a board up to date from a running coordinator.
#[derive(Debug)]
pub struct Watcher {
    board: Board,
    handle: CoordinatorHandle,
}

impl Watcher {
    /// Writes to `board` what becomes of the coordinator that `handle` steers.
    pub fn new(board: Board, handle: CoordinatorHandle) -> Self {
        Self { board, handle }
    }
}

impl FederationObserver for Watcher {
    fn round_closed(&mut self, round: &TimedRound) {
        let traffic = self.handle.traffic();
        self.board.write(|view| view.close(&round.evidence.record, round.seconds, traffic));
    }

    fn stepped(&mut self, federation: &Federation) {
        let (traffic, connected) = (self.handle.traffic(), self.handle.is_connected());
        self.board.write(|view| {
            view.glance(federation, traffic, connected);
        });
    }
}
