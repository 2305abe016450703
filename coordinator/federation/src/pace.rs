//! The pace of rounds: as fast as the meters have new data.

use evenhand_protocol::message::Declined;
use serde::{Deserialize, Serialize};

use crate::collected::CollectedRound;
use crate::config::GeneralConfig;
use crate::input::Tick;
use crate::measuring::MeasureResponse;

/// The first wait for new data, and the longest.
const WAIT_MIN_MS: u32 = 1_000;
const WAIT_MAX_MS: u32 = 3_600_000;

/// The wait between two rounds, learnt from how many nodes had new data.
///
/// # Formula
/// With w the time from one round with data to the next: w ← 15/16·w after a round in which most had new data, and
/// w ← 3/2·w, from one second to one hour, after one in which most had none. So rounds come at 1 to 1½ times the pace of the
/// meters, whatever it is, and no node has to say when it will have data.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct RoundPace {
    wait_ms: u32,
    /// Of the last attempt: nodes that had no new data, and nodes that answered.
    without_data: usize,
    answered: usize,
}

/// A federation whose rounds come faster than its meters have new data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OutrunMeters {
    /// Nodes that had no new data when they were asked last.
    pub without_data: usize,
    /// Nodes that answered then.
    pub answered: usize,
    /// The interval that the operator has set, in milliseconds; 0 leaves the pace to the meters.
    pub interval_ms: u32,
    /// The wait from one round with data to the next, in milliseconds.
    pub wait_ms: u32,
}

impl std::fmt::Display for OutrunMeters {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { without_data, answered, interval_ms, wait_ms } = self;
        write!(out, "{without_data} of {answered} nodes had no new data when they were asked last; ")?;
        match interval_ms {
            0 => write!(out, "rounds wait up to {} s for the meters", wait_ms.div_ceil(1000)),
            interval => write!(
                out,
                "rounds outrun the meters: raise federation.round_interval_ms = {interval}, or set it to 0 to follow them"
            ),
        }
    }
}

impl RoundPace {
    /// Takes an attempt into account; returns when the next one may be made.
    pub(crate) fn next_opening(&mut self, round: &CollectedRound, general: &GeneralConfig) -> Tick {
        (self.without_data, self.answered) = round.answers_without_data();
        let wait = if round.is_empty() || is_starved(self.without_data, self.answered) {
            let before = self.wait_ms;
            self.wait_ms = (before / 2 * 3).clamp(WAIT_MIN_MS, WAIT_MAX_MS);
            // So much is left of the wait since the last round with data; at the longest, all of it again.
            if self.wait_ms == before { before } else { self.wait_ms - before }
        } else {
            self.wait_ms = self.wait_ms / 16 * 15;
            self.wait_ms
        };
        let apart = match general.round_interval_ms {
            0 => wait,
            interval if round.is_empty() => interval.max(wait),
            interval => interval,
        };
        round.opened.plus_ms(apart)
    }

    /// The longest wait before the next attempt.
    pub(crate) fn wait_max_ms(&self) -> u32 {
        self.wait_ms
    }

    /// What is to be said of rounds that are too fast for the meters; nothing while they are not.
    pub(crate) fn outrun(&self, general: &GeneralConfig) -> Option<OutrunMeters> {
        is_starved(self.without_data, self.answered).then_some(OutrunMeters {
            without_data: self.without_data,
            answered: self.answered,
            interval_ms: general.round_interval_ms,
            wait_ms: self.wait_ms,
        })
    }
}

/// Whether most of those that answered had no new data.
pub(crate) fn is_starved(without_data: usize, answered: usize) -> bool {
    2 * without_data > answered
}

impl CollectedRound {
    /// Of the nodes that answered the request for a reference gradient: those without new data, and all.
    pub(crate) fn answers_without_data(&self) -> (usize, usize) {
        let responses = self.measured_nodes().iter().map(|node| self.measure_response(*node));
        responses.fold((0, 0), |(without, answered), response| match response {
            MeasureResponse::Declined(Declined::NoData) => (without + 1, answered + 1),
            MeasureResponse::Measured { .. }
            | MeasureResponse::Repeated
            | MeasureResponse::Withheld
            | MeasureResponse::Declined(_)
            | MeasureResponse::Refused(_) => (without, answered + 1),
            MeasureResponse::NotAsked | MeasureResponse::Disconnected | MeasureResponse::Missed => {
                (without, answered)
            }
        })
    }
}
