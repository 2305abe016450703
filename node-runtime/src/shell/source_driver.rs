//! Source driver: reads a source round by round in line, or continuously on a thread.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use evenhand_protocol::identity::NodeId;
use tokio::sync::mpsc;

use super::reading_watch::ReadingWatch;
use super::{NodeError, SourceStatus};
use crate::config::{NodeConfig, Pace};
use crate::inline::read_rounds;
use crate::reading::{InputBatch, Reading, SourcePosition};
use crate::source::time::iso_text;
use crate::source::{Acknowledgement, Intake, Source, SourceContext, SourceError, now_ms};

/// Readings in one batch.
const BATCH_MAX: usize = 256;
/// Batches that wait for the event loop before the source is blocked.
const QUEUED_MAX: usize = 4;
/// Readings of a side series in one round.
const DUE_MAX: usize = 65_536;
/// Steps without a reading after which a source is silent.
const SILENT_STEPS: i64 = 3;
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
        let is_covariate = config.covariate.iter().any(|covariate| covariate.name == name);
        let watch = ReadingWatch::new(config.window.step_s, is_covariate);
        let silent_after_ms = SILENT_STEPS * i64::from(config.window.step_s) * 1000;
        let monitor = SourceMonitor {
            node,
            name,
            silent_after_ms,
            shared: Arc::default(),
            watch: Arc::new(Mutex::new(watch)),
        };
        if config.pace.by == Pace::Rounds {
            let source = open(config, &monitor.name, position)?;
            let mode = SourceMode::Rounds { source, readings_per_round: config.pace.readings_per_round };
            return Ok(Self::new(mode, monitor));
        }
        // Of a covariate or of rows nothing is expected at a time.
        if !is_covariate && config.rows.is_none() {
            monitor.shared().newest_arrival_ms = Some(now_ms());
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
        self.monitor.status_at(now_ms())
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
        self.monitor.intake(0, source.as_ref());
        match read {
            Ok(batch) => {
                self.monitor.note(&batch);
                batch
            }
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
            self.monitor.intake(0, source.as_ref());
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
        let mut kept_out_before = self.monitor.shared().malformed;
        loop {
            let mut batch = match source.read(BATCH_MAX) {
                Ok(batch) => batch,
                Err(error) => return Some(error),
            };
            kept_out_before += self.monitor.refuse(&mut batch);
            self.monitor.intake(kept_out_before, source);
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
            self.monitor.note(&batch);
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
    silent_after_ms: i64,
    shared: Arc<Mutex<SourceStatus>>,
    watch: Arc<Mutex<ReadingWatch>>,
}

impl SourceMonitor {
    fn shared(&self) -> MutexGuard<'_, SourceStatus> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the malformed inputs of a source beside those before it was opened, and logs the first of all.
    fn intake(&self, before: u64, source: &dyn Source) {
        self.shared().malformed = before + source.malformed();
        if let Some(example) = source.intake().and_then(Intake::example) {
            self.keep_out(example);
        }
    }

    /// Drops readings whose times cannot be right; their number.
    fn refuse(&self, batch: &mut InputBatch) -> u64 {
        let InputBatch::Readings(readings) = batch else { return 0 };
        let (watch, now_ms, before) = (self.watch(), now_ms(), readings.len());
        let mut first = None;
        readings.retain(|reading| match watch.refusal(*reading, now_ms) {
            Some(reason) => {
                first.get_or_insert_with(|| format!("a reading of {}: {reason}", reading.value));
                false
            }
            None => true,
        });
        if let Some(example) = first {
            self.keep_out(&example);
        }
        (before - readings.len()) as u64
    }

    fn keep_out(&self, example: &str) {
        let mut status = self.shared();
        if status.kept_out.is_none() {
            tracing::warn!(
                node = %self.node, series = self.name, example,
                "input kept out; further ones are only counted"
            );
            status.kept_out = Some(example.to_owned());
        }
    }

    /// Notes the times of readings, and logs once that they do not fit the steps.
    fn note(&self, batch: &InputBatch) {
        let mut watch = self.watch();
        watch.note(batch);
        let misfit = watch.misfit();
        drop(watch);
        let mut status = self.shared();
        if let Some(sentence) = misfit.as_ref().filter(|_| status.misfit.is_none()) {
            tracing::warn!(node = %self.node, series = self.name, "{sentence}");
        }
        status.misfit = misfit;
    }

    fn watch(&self) -> MutexGuard<'_, ReadingWatch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The status at `now_ms`; logs once that the source has fallen silent.
    fn status_at(&self, now_ms: i64) -> SourceStatus {
        let mut status = self.shared();
        let silent = status.newest_arrival_ms.filter(|arrival_ms| {
            !status.ended && status.failing.is_none() && now_ms - arrival_ms > self.silent_after_ms
        });
        if let Some(since_ms) = silent.filter(|_| status.silent_since_ms.is_none()) {
            let since = iso_text(since_ms);
            tracing::warn!(
                node = %self.node, series = self.name, since,
                "the source is silent; try evenhand-node probe"
            );
        }
        status.silent_since_ms = silent;
        status.clone()
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
        let mut status = self.shared();
        status.newest_arrival_ms = status.newest_arrival_ms.and(Some(now_ms()));
        if status.failing.take().is_some() | status.silent_since_ms.take().is_some() {
            tracing::info!(node = %self.node, series = self.name, "source recovered");
        }
    }
}
