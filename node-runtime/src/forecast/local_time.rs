//! The time that a household's clocks show.

use serde::{Deserialize, Serialize};

/// Local time as spans of constant offset from UTC: a time zone between two dates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalTime {
    first_offset_s: i32,
    /// Moments at which the clocks change, in milliseconds since 1970, and the offset from then on; oldest first.
    changes: Vec<(i64, i32)>,
}

impl LocalTime {
    /// Clocks that never change.
    pub fn fixed(offset_s: i32) -> Self {
        Self { first_offset_s: offset_s, changes: Vec::new() }
    }

    /// The same clocks, changed to another offset at `time_ms`, which is later than every earlier change.
    #[must_use]
    pub fn changed_at(mut self, time_ms: i64, offset_s: i32) -> Self {
        self.changes.push((time_ms, offset_s));
        self
    }

    /// Local time minus UTC at a moment, in seconds.
    pub fn offset_s(&self, time_ms: i64) -> i64 {
        let later = self.changes.iter().rev().find(|(at_ms, _)| *at_ms <= time_ms);
        later.map_or(self.first_offset_s, |(_, offset_s)| *offset_s).into()
    }

    /// The local time at a moment, in milliseconds since 1970 by the household's clocks.
    pub fn local_ms(&self, time_ms: i64) -> i64 {
        time_ms.saturating_add(self.offset_s(time_ms) * 1000)
    }
}

impl Default for LocalTime {
    fn default() -> Self {
        Self::fixed(0)
    }
}
