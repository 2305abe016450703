//! The floor on the readings behind an update.

/// The least readings of which an update or a reference gradient is made.
///
/// A reading is a measured step that is the target of a sample, or a labelled row. At least half of them must be ones that
/// no earlier message of the kind was made of: two messages whose batches differ by one reading would give that one away as
/// their difference. So that all nodes of a federation have something new at the same time, whenever they began, a node
/// answers only after the end of a block of so many steps, which for a day's worth is midnight in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingsFloor(usize);

impl ReadingsFloor {
    /// No floor: one reading is enough.
    pub const NONE: Self = Self(1);

    /// At least so many readings.
    pub fn new(least: usize) -> Self {
        Self(least.max(1))
    }

    /// The least number of readings.
    pub fn least(self) -> usize {
        self.0
    }

    /// The least number of those that no earlier message was made of.
    pub fn fresh_least(self) -> usize {
        self.0.div_ceil(2)
    }

    /// True if a block of steps ended after step `last`, up to step `newest`.
    pub fn is_due(self, last: i64, newest: i64) -> bool {
        let block = self.0 as i64;
        newest.div_euclid(block) > last.div_euclid(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_due_at_its_end_and_once() {
        let day = ReadingsFloor::new(96);
        assert_eq!((day.least(), day.fresh_least()), (96, 48));
        assert!(!day.is_due(96, 191) && day.is_due(96, 192) && day.is_due(191, 192));
        assert!(!day.is_due(192, 200) && day.is_due(i64::MIN, 0));
        assert!(ReadingsFloor::NONE.is_due(7, 8) && !ReadingsFloor::NONE.is_due(8, 8));
        assert_eq!(ReadingsFloor::new(0), ReadingsFloor::NONE);
    }
}
