//! Forecasts that are compared.

use serde::{Serialize, Serializer};

/// A forecast that is compared with the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum YearVariant {
    /// The last value.
    RepeatLast,
    /// The value a day before.
    Yesterday,
    /// The value a week before.
    LastWeek,
    /// The quantiles of the slot over 14 days.
    SlotMedian,
    /// The same network, trained by the household's own readings alone.
    Alone,
    /// The latest shared model in every round, by any node.
    FedAvg,
    /// The shared model the household was last drawn with.
    Evenhand,
    /// That with personal part and mixture: what a household sees.
    EvenhandPersonal,
    /// The same network, trained by everybody's readings in one place.
    Pooled,
}

impl YearVariant {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 9] = [
        Self::RepeatLast,
        Self::Yesterday,
        Self::LastWeek,
        Self::SlotMedian,
        Self::Alone,
        Self::FedAvg,
        Self::Evenhand,
        Self::EvenhandPersonal,
        Self::Pooled,
    ];
    /// Those that need no learning.
    pub const NAIVE: [Self; 4] = [Self::RepeatLast, Self::Yesterday, Self::LastWeek, Self::SlotMedian];

    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::RepeatLast => "repeat-last",
            Self::Yesterday => "yesterday",
            Self::LastWeek => "last-week",
            Self::SlotMedian => "slot-median",
            Self::Alone => "alone",
            Self::FedAvg => "fedavg",
            Self::Evenhand => "evenhand",
            Self::EvenhandPersonal => "evenhand-personal",
            Self::Pooled => "pooled",
        }
    }

    /// Its place in [`ALL`](Self::ALL).
    pub fn place(self) -> usize {
        self as usize
    }
}

impl Serialize for YearVariant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
