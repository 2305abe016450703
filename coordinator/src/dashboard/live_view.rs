//! The view that the run loop writes and the server reads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::watch;

use crate::shell::{CoordinatorHandle, FederationObserver, TimedRound};
use crate::view::FederationView;
use evenhand_federation::Federation;

/// A shared view; clones share it too.
#[derive(Debug, Clone)]
pub struct LiveView(Arc<LiveViewState>);

#[derive(Debug)]
struct LiveViewState {
    view: Mutex<FederationView>,
    /// The large answers, with the version they were encoded from: all readers of a version share one.
    nodes: Mutex<(u64, Bytes)>,
    draws: Mutex<(u64, Bytes)>,
    version: watch::Sender<u64>,
}

impl LiveView {
    /// Shares `view`.
    pub fn new(view: FederationView) -> Self {
        let version = watch::Sender::new(view.version());
        let none = || Mutex::new((u64::MAX, Bytes::new()));
        Self(Arc::new(LiveViewState { view: Mutex::new(view), nodes: none(), draws: none(), version }))
    }

    /// The value of `read` on the view.
    pub fn read<T>(&self, read: impl FnOnce(&FederationView) -> T) -> T {
        read(&locked(&self.0.view))
    }

    /// Changes the view, and notifies its subscribers.
    pub fn write(&self, change: impl FnOnce(&mut FederationView)) {
        let version = {
            let mut view = locked(&self.0.view);
            change(&mut view);
            view.version()
        };
        self.0.version.send_if_modified(|last| std::mem::replace(last, version) != version);
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

    fn cached(&self, cache: &Mutex<(u64, Bytes)>, make: impl FnOnce(&FederationView) -> Bytes) -> Bytes {
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

/// Keeps a live view up to date from a running coordinator.
#[derive(Debug)]
pub struct LiveViewUpdater {
    live_view: LiveView,
    handle: CoordinatorHandle,
}

impl LiveViewUpdater {
    /// Writes the rounds and changes of the coordinator behind `handle` to `live_view`.
    pub fn new(live_view: LiveView, handle: CoordinatorHandle) -> Self {
        Self { live_view, handle }
    }
}

impl FederationObserver for LiveViewUpdater {
    fn round_closed(&mut self, round: &TimedRound) {
        let traffic = self.handle.traffic();
        self.live_view.write(|view| view.close(&round.evidence.round, round.seconds, traffic));
    }

    fn stepped(&mut self, federation: &Federation) {
        let (traffic, connected) = (self.handle.traffic(), self.handle.is_connected());
        self.live_view.write(|view| {
            view.refresh(federation, traffic, connected);
        });
    }
}
