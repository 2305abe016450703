//! Units of power.

/// A unit that Home Assistant and energy managers know as power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PowerUnit {
    Watt,
    Kilowatt,
}

impl PowerUnit {
    /// The unit by its symbol; none if it is not one of power.
    pub(super) fn of(symbol: &str) -> Option<Self> {
        match symbol {
            "W" => Some(Self::Watt),
            "kW" => Some(Self::Kilowatt),
            _ => None,
        }
    }

    /// A value of this unit, rounded to whole watts.
    pub(super) fn watts(self, value: f32) -> i64 {
        let factor = match self {
            Self::Watt => 1.0,
            Self::Kilowatt => 1000.0,
        };
        (f64::from(value) * factor).round() as i64
    }

    /// Decimals that are worth showing: whole watts.
    pub(super) fn precision(self) -> u8 {
        match self {
            Self::Watt => 0,
            Self::Kilowatt => 3,
        }
    }
}
