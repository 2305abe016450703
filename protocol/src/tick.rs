//! Time as the state machines see it.

use serde::{Deserialize, Serialize};

/// Milliseconds on the clock of a driver; it must not run backwards while the driver lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Tick(pub u64);

impl Tick {
    /// This moment and `ms` more.
    pub fn plus_ms(self, ms: u32) -> Tick {
        Tick(self.0.saturating_add(u64::from(ms)))
    }

    /// Milliseconds from `earlier` until this moment; 0 if it lies ahead.
    pub fn ms_since(self, earlier: Tick) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
