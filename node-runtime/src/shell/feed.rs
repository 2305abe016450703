//! A source as the event loop sees it: read in line by rounds, or on a thread of its own.

use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;

use super::NodeError;
use crate::config::{Config, Pace, SourceSection};
use crate::inline::read_rounds;
use crate::reading::Intake;
use crate::source::csv::Csv;
use crate::source::household::Household;
use crate::source::jsonl::Jsonl;
use crate::source::modbus::Modbus;
use crate::source::mqtt::Mqtt;
use crate::source::p1::P1;
use crate::source::{Clocked, Source, SourceError, now_ms};

/// Readings taken over at once.
const COUNT: usize = 256;
/// Intakes that wait for the event loop before the source is held back.
const WAITING: usize = 4;
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Where readings come from.
pub(super) enum Feed {
    Rounds { source: Box<dyn Source>, readings_per_round: usize },
    Clock(mpsc::Receiver<Intake>),
}

impl Feed {
    pub(super) fn start(config: &Config, newest_ms: Option<i64>) -> Result<Self, NodeError> {
        if config.pace.by == Pace::Rounds {
            let source = open(config, newest_ms)?;
            return Ok(Feed::Rounds { source, readings_per_round: config.pace.readings_per_round });
        }
        let (sender, receiver) = mpsc::channel(WAITING);
        let config = config.clone();
        thread::Builder::new()
            .name("source".into())
            .spawn(move || follow(&config, newest_ms, &sender))
            .map_err(SourceError::Thread)?;
        Ok(Feed::Clock(receiver))
    }

    /// What a live source hands over; never, if the source is read by rounds or ended. Safe to use in `select!`.
    pub(super) async fn next(&mut self) -> Intake {
        if let Feed::Clock(receiver) = self
            && let Some(intake) = receiver.recv().await
        {
            return intake;
        }
        std::future::pending().await
    }

    pub(super) fn read_rounds(&mut self, rounds: u32) -> Intake {
        match self {
            Feed::Rounds { source, readings_per_round } => {
                read_rounds(source.as_mut(), rounds, *readings_per_round)
            }
            Feed::Clock(_) => Intake::Readings(Vec::new()),
        }
    }
}

fn open(config: &Config, newest_ms: Option<i64>) -> Result<Box<dyn Source>, SourceError> {
    Ok(match &config.source {
        SourceSection::Household(settings) => {
            let household = Household::new(settings.clone()).resume(newest_ms);
            match config.pace.by {
                Pace::Rounds => Box::new(household),
                Pace::Clock => Box::new(Clocked::new(household, config.pace.speed, now_ms())),
            }
        }
        SourceSection::Csv(settings) => Box::new(Csv::open(settings.clone(), newest_ms)?),
        SourceSection::Jsonl(settings) => Box::new(Jsonl::open(settings.clone(), newest_ms)?),
        SourceSection::Mqtt(settings) => {
            let section = settings.broker.as_ref().unwrap_or(&config.broker);
            let (broker, tls) = section.resolve().map_err(Box::new)?;
            let client_id = format!("evenhand-{}-{}-source", config.node.federation, config.node.id);
            Box::new(Mqtt::open(settings, &broker, tls.as_ref(), &client_id, newest_ms)?)
        }
        SourceSection::Modbus(settings) => Box::new(Modbus::open(settings.clone())?),
        SourceSection::P1(settings) => Box::new(P1::open(settings.clone(), newest_ms)?),
    })
}

/// Reads until nobody listens any more; a source that fails is opened again after a pause.
fn follow(config: &Config, mut newest_ms: Option<i64>, sender: &mpsc::Sender<Intake>) {
    let mut pause = PAUSE_MIN;
    loop {
        let failed = match open(config, newest_ms) {
            Ok(mut source) => read_until_error(source.as_mut(), &mut newest_ms, &mut pause, sender),
            Err(error) => Some(error),
        };
        match failed {
            None => return,
            Some(SourceError::Ended) => {
                tracing::info!(node = %config.node.id, "the source is at its end; no more readings will come");
                return;
            }
            Some(error) => {
                tracing::warn!(node = %config.node.id, %error, again_in = ?pause, "the source fails");
                if !wait(pause, sender) {
                    return;
                }
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

/// The error that ended the source; none when nobody listens any more.
fn read_until_error(
    source: &mut dyn Source,
    newest_ms: &mut Option<i64>,
    pause: &mut Duration,
    sender: &mpsc::Sender<Intake>,
) -> Option<SourceError> {
    loop {
        let intake = match source.read(COUNT) {
            Ok(intake) => intake,
            Err(error) => return Some(error),
        };
        if sender.is_closed() {
            return None;
        }
        if intake.is_empty() {
            continue;
        }
        *pause = PAUSE_MIN;
        if let Intake::Readings(readings) = &intake {
            *newest_ms = readings.last().map(|newest| newest.time_ms);
        }
        if sender.blocking_send(intake).is_err() {
            return None;
        }
    }
}

/// Whether somebody still listens after `pause`.
fn wait(pause: Duration, sender: &mpsc::Sender<Intake>) -> bool {
    let mut left = pause;
    while !left.is_zero() && !sender.is_closed() {
        let nap = left.min(PAUSE_MIN);
        thread::sleep(nap);
        left -= nap;
    }
    !sender.is_closed()
}
