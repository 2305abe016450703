//! Source driver: reads a source round by round in line, or continuously on a thread.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use evenhand_protocol::identity::NodeId;
use tokio::sync::mpsc;

use super::{NodeError, SourceStatus};
use crate::config::{NodeConfig, Pace};
use crate::inline::read_rounds;
use crate::reading::{InputBatch, Reading, SourcePosition};
use crate::source::{Acknowledgement, Source, SourceContext, SourceError};

/// Readings in one batch.
const BATCH_MAX: usize = 256;
/// Batches that wait for the event loop before the source is blocked.
const QUEUED_MAX: usize = 4;
/// Readings of a side series in one round.
const DUE_MAX: usize = 65_536;
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// A source and its status.
pub(super) struct SourceDriver {
    mode: SourceMode,
    monitor: SourceMonitor,
    /// For data that may not be in the journal yet.
    unacknowledged: Vec<Acknowledgement>,
    /// Readings that were read before they are due, by rounds.
    ahead: VecDeque<Reading>,
}

enum SourceMode {
    Rounds { source: Box<dyn Source>, readings_per_round: usize },
    Clock(mpsc::Receiver<(InputBatch, Option<Acknowledgement>)>),
}

impl SourceDriver {
    /// Starts the source of a configuration; `name` is "source", or that of a side series.
    pub(super) fn start(
        config: &NodeConfig,
        name: &str,
        position: SourcePosition,
    ) -> Result<Self, NodeError> {
        let (node, name) = (config.node.id.clone(), name.to_owned());
        let monitor = SourceMonitor { node, name, shared: Arc::default() };
        if config.pace.by == Pace::Rounds {
            let source = open(config, &monitor.name, position)?;
            let mode = SourceMode::Rounds { source, readings_per_round: config.pace.readings_per_round };
            return Ok(Self::new(mode, monitor));
        }
        let (sender, receiver) = mpsc::channel(QUEUED_MAX);
        let mut source_thread =
            SourceThread { config: config.clone(), position, sender, monitor: monitor.clone() };
        thread::Builder::new()
            .name("source".into())
            .spawn(move || source_thread.run())
            .map_err(SourceError::Thread)?;
        Ok(Self::new(SourceMode::Clock(receiver), monitor))
    }

    fn new(mode: SourceMode, monitor: SourceMonitor) -> Self {
        Self { mode, monitor, unacknowledged: Vec::new(), ahead: VecDeque::new() }
    }

    /// The status of the source.
    pub(super) fn status(&self) -> SourceStatus {
        self.monitor.shared().clone()
    }

    /// The next data of a live source; never ready if the source is read by rounds or ended. Cancel safe.
    pub(super) async fn next(&mut self) -> InputBatch {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Polls for what [`next`](Self::next) returns.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<InputBatch> {
        if let SourceMode::Clock(receiver) = &mut self.mode
            && let Poll::Ready(Some((batch, acknowledgement))) = receiver.poll_recv(context)
        {
            self.unacknowledged.extend(acknowledgement);
            return Poll::Ready(batch);
        }
        Poll::Pending
    }

    /// Acknowledges all data so far: they are in the journal, or the disk has failed.
    pub(super) fn acknowledge(&mut self) {
        self.unacknowledged.drain(..).for_each(Acknowledgement::send);
    }

    /// The data of a recorded source for some rounds; none if it fails or has ended.
    pub(super) fn read_rounds(&mut self, rounds: u32) -> InputBatch {
        let nothing = InputBatch::Readings(Vec::new());
        let SourceMode::Rounds { source, readings_per_round } = &mut self.mode else { return nothing };
        let read = read_rounds(source.as_mut(), rounds, *readings_per_round);
        self.monitor.malformed(source.malformed());
        match read {
            Ok(batch) => batch,
            Err(error) => {
                self.monitor.failed(&error);
                nothing
            }
        }
    }

    /// The readings of a recorded source up to `until_ms`; none if it fails or has ended.
    pub(super) fn read_until(&mut self, until_ms: i64) -> InputBatch {
        let mut due = Vec::new();
        while let SourceMode::Rounds { source, .. } = &mut self.mode {
            while let Some(next) = self.ahead.pop_front_if(|reading| reading.time_ms <= until_ms) {
                due.push(next);
            }
            if !self.ahead.is_empty() || due.len() >= DUE_MAX {
                break;
            }
            let read = source.read(BATCH_MAX);
            self.monitor.malformed(source.malformed());
            match read {
                Ok(InputBatch::Readings(readings)) if !readings.is_empty() => self.ahead.extend(readings),
                Ok(_) => break,
                Err(error) => {
                    self.monitor.failed(&error);
                    break;
                }
            }
        }
        InputBatch::Readings(due)
    }
}

fn open(config: &NodeConfig, name: &str, position: SourcePosition) -> Result<Box<dyn Source>, SourceError> {
    config.source.kind().open(&SourceContext { config, name, position })
}

/// The thread that reads a live source.
struct SourceThread {
    config: NodeConfig,
    position: SourcePosition,
    sender: mpsc::Sender<(InputBatch, Option<Acknowledgement>)>,
    monitor: SourceMonitor,
}

impl SourceThread {
    /// Reads until the receiver is dropped; a source that fails is opened again after a pause.
    fn run(&mut self) {
        let mut pause = RETRY_MIN;
        loop {
            let failed = match open(&self.config, &self.monitor.name, self.position) {
                Ok(mut source) => self.read_until_error(source.as_mut(), &mut pause),
                Err(error) => Some(error),
            };
            match failed {
                None => return,
                Some(error) => self.monitor.failed(&error),
            }
            if self.monitor.shared().ended {
                return;
            }
            if !self.wait(pause) {
                return;
            }
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    /// The error that ended the source; none when the receiver was dropped.
    fn read_until_error(&mut self, source: &mut dyn Source, pause: &mut Duration) -> Option<SourceError> {
        let malformed_before = self.monitor.shared().malformed;
        loop {
            let batch = match source.read(BATCH_MAX) {
                Ok(batch) => batch,
                Err(error) => return Some(error),
            };
            self.monitor.malformed(malformed_before + source.malformed());
            if self.sender.is_closed() {
                return None;
            }
            let acknowledgement = source.acknowledgement();
            if batch.is_empty() {
                acknowledgement.into_iter().for_each(Acknowledgement::send);
                continue;
            }
            *pause = RETRY_MIN;
            self.monitor.works();
            self.position.advance(&batch);
            if self.sender.blocking_send((batch, acknowledgement)).is_err() {
                return None;
            }
        }
    }

    /// Sleeps for `pause`; false if the receiver was dropped meanwhile.
    fn wait(&self, pause: Duration) -> bool {
        let mut left = pause;
        while !left.is_zero() && !self.sender.is_closed() {
            let nap = left.min(RETRY_MIN);
            thread::sleep(nap);
            left -= nap;
        }
        !self.sender.is_closed()
    }
}

/// The shared status of a source.
#[derive(Clone)]
struct SourceMonitor {
    node: NodeId,
    /// "source", or the name of a side series.
    name: String,
    shared: Arc<Mutex<SourceStatus>>,
}

impl SourceMonitor {
    fn shared(&self) -> MutexGuard<'_, SourceStatus> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn malformed(&self, count: u64) {
        self.shared().malformed = count;
    }

    /// Records and logs an error, once until it ends or changes.
    fn failed(&self, error: &SourceError) {
        let mut monitor = self.shared();
        if let SourceError::Ended = error {
            if !std::mem::replace(&mut monitor.ended, true) {
                tracing::info!(node = %self.node, series = self.name, "end of the source; no more readings");
            }
            return;
        }
        let cause = error.to_string();
        if monitor.failing.as_ref() != Some(&cause) {
            tracing::warn!(node = %self.node, series = self.name, cause, "source failed; retrying");
            monitor.failing = Some(cause);
        }
    }

    fn works(&self) {
        if self.shared().failing.take().is_some() {
            tracing::info!(node = %self.node, series = self.name, "source recovered");
        }
    }
}
