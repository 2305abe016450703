//! A source as the event loop sees it: read in line by rounds, or on a thread of its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use evenhand_protocol::identity::NodeId;
use tokio::sync::mpsc;

use super::{NodeError, SourceHealth};
use crate::config::{Config, Pace, SourceSection};
use crate::inline::read_rounds;
use crate::reading::{Intake, Position};
use crate::source::{Receipt, Source, SourceError};

/// Readings taken over at once.
const COUNT: usize = 256;
/// Intakes that wait for the event loop before the source is held back.
const WAITING: usize = 4;
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Where readings come from.
pub(super) struct Feed {
    kind: Kind,
    health: Health,
    /// Of what was handed over and may not be kept yet.
    receipts: Vec<Receipt>,
}

enum Kind {
    Rounds { source: Box<dyn Source>, readings_per_round: usize },
    Clock(mpsc::Receiver<(Intake, Option<Receipt>)>),
}

impl Feed {
    pub(super) fn start(config: &Config, position: Position) -> Result<Self, NodeError> {
        let health = Health { node: config.node.id.clone(), shared: Arc::default() };
        if config.pace.by == Pace::Rounds {
            let source = open(config, position)?;
            let kind = Kind::Rounds { source, readings_per_round: config.pace.readings_per_round };
            return Ok(Self { kind, health, receipts: Vec::new() });
        }
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut follower = Follower { config: config.clone(), position, sender, health: health.clone() };
        thread::Builder::new()
            .name("source".into())
            .spawn(move || follower.follow())
            .map_err(SourceError::Thread)?;
        Ok(Self { kind: Kind::Clock(receiver), health, receipts: Vec::new() })
    }

    /// How the source is doing.
    pub(super) fn health(&self) -> SourceHealth {
        self.health.shared().clone()
    }

    /// What a live source hands over; never, if the source is read by rounds or ended. Safe to use in `select!`.
    pub(super) async fn next(&mut self) -> Intake {
        if let Kind::Clock(receiver) = &mut self.kind
            && let Some((intake, receipt)) = receiver.recv().await
        {
            self.receipts.extend(receipt);
            return intake;
        }
        std::future::pending().await
    }

    /// All that was handed over is in the journal, or nothing more can be done for it.
    pub(super) fn kept(&mut self) {
        self.receipts.drain(..).for_each(Receipt::sign);
    }

    /// What a recorded source has for so many rounds; nothing, if it fails or has no more.
    pub(super) fn read_rounds(&mut self, rounds: u32) -> Intake {
        let nothing = Intake::Readings(Vec::new());
        let Kind::Rounds { source, readings_per_round } = &mut self.kind else { return nothing };
        let read = read_rounds(source.as_mut(), rounds, *readings_per_round);
        self.health.malformed(source.malformed());
        match read {
            Ok(intake) => intake,
            Err(error) => {
                self.health.failed(&error);
                nothing
            }
        }
    }
}

#[cfg_attr(
    not(any(feature = "csv", feature = "household", feature = "jsonl", feature = "mqtt")),
    allow(unused_variables, reason = "the other sources have no past")
)]
fn open(config: &Config, position: Position) -> Result<Box<dyn Source>, SourceError> {
    Ok(match &config.source {
        #[cfg(feature = "household")]
        SourceSection::Household(settings) => {
            use crate::source::{Clocked, household::Household, now_ms};
            let household = Household::new(settings.clone()).resume(position.newest_ms);
            match config.pace.by {
                Pace::Rounds => Box::new(household),
                Pace::Clock => Box::new(Clocked::new(household, config.pace.speed, now_ms())),
            }
        }
        #[cfg(feature = "csv")]
        SourceSection::Csv(settings) => Box::new(crate::source::csv::Csv::open(settings.clone(), position)?),
        #[cfg(feature = "jsonl")]
        SourceSection::Jsonl(settings) => {
            Box::new(crate::source::jsonl::Jsonl::open(settings.clone(), position)?)
        }
        #[cfg(feature = "mqtt")]
        SourceSection::Mqtt(settings) => {
            let resolved = match &settings.broker {
                Some(section) => section.resolve(None),
                None => config.broker.resolve(Some(&config.node.id)),
            };
            let (broker, tls) = resolved.map_err(Box::new)?;
            let client_id = format!("evenhand-{}-{}-source", config.node.federation, config.node.id);
            let mqtt =
                crate::source::mqtt::Mqtt::open(settings, &broker, tls.as_ref(), &client_id, position)?;
            Box::new(mqtt)
        }
        #[cfg(feature = "modbus")]
        SourceSection::Modbus(settings) => Box::new(crate::source::modbus::Modbus::open(settings.clone())?),
        #[cfg(feature = "p1")]
        SourceSection::P1(settings) => Box::new(crate::source::p1::P1::open(settings.clone())?),
    })
}

/// The thread that reads a live source.
struct Follower {
    config: Config,
    position: Position,
    sender: mpsc::Sender<(Intake, Option<Receipt>)>,
    health: Health,
}

impl Follower {
    /// Reads until nobody listens any more; a source that fails is opened again after a pause.
    fn follow(&mut self) {
        let mut pause = PAUSE_MIN;
        loop {
            let failed = match open(&self.config, self.position) {
                Ok(mut source) => self.read_until_error(source.as_mut(), &mut pause),
                Err(error) => Some(error),
            };
            match failed {
                None => return,
                Some(error) => self.health.failed(&error),
            }
            if self.health.shared().ended {
                return;
            }
            if !self.wait(pause) {
                return;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// The error that ended the source; none when nobody listens any more.
    fn read_until_error(&mut self, source: &mut dyn Source, pause: &mut Duration) -> Option<SourceError> {
        let malformed_before = self.health.shared().malformed;
        loop {
            let intake = match source.read(COUNT) {
                Ok(intake) => intake,
                Err(error) => return Some(error),
            };
            self.health.malformed(malformed_before + source.malformed());
            if self.sender.is_closed() {
                return None;
            }
            let receipt = source.receipt();
            if intake.is_empty() {
                receipt.into_iter().for_each(Receipt::sign);
                continue;
            }
            *pause = PAUSE_MIN;
            self.health.works();
            self.position.advance(&intake);
            if self.sender.blocking_send((intake, receipt)).is_err() {
                return None;
            }
        }
    }

    /// Whether somebody still listens after `pause`.
    fn wait(&self, pause: Duration) -> bool {
        let mut left = pause;
        while !left.is_zero() && !self.sender.is_closed() {
            let nap = left.min(PAUSE_MIN);
            thread::sleep(nap);
            left -= nap;
        }
        !self.sender.is_closed()
    }
}

/// How a source is doing, for the reader and those who watch.
#[derive(Clone)]
struct Health {
    node: NodeId,
    shared: Arc<Mutex<SourceHealth>>,
}

impl Health {
    fn shared(&self) -> MutexGuard<'_, SourceHealth> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn malformed(&self, count: u64) {
        self.shared().malformed = count;
    }

    /// Says what is wrong, once until it is over or something else.
    fn failed(&self, error: &SourceError) {
        let mut health = self.shared();
        if let SourceError::Ended = error {
            if !std::mem::replace(&mut health.ended, true) {
                tracing::info!(node = %self.node, "the source is at its end; no more readings will come");
            }
            return;
        }
        let cause = error.to_string();
        if health.failing.as_ref() != Some(&cause) {
            tracing::warn!(node = %self.node, cause, "the source fails; trying again");
            health.failing = Some(cause);
        }
    }

    fn works(&self) {
        if self.shared().failing.take().is_some() {
            tracing::info!(node = %self.node, "the source works again");
        }
    }
}
