//! Log lines of one kind, limited by time and counted.

use std::time::{Duration, Instant};

/// The period in which a line of one kind is written once.
pub const LOG_PERIOD: Duration = Duration::from_secs(60);

/// Permits one line a period, or a few, and counts those that were left out.
#[derive(Debug, Clone)]
pub struct LogRate {
    period: Duration,
    lines_max: u32,
    /// The time of the first line of the period.
    begun: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl Default for LogRate {
    fn default() -> Self {
        Self::new(LOG_PERIOD)
    }
}

impl LogRate {
    /// One line in `period`.
    pub fn new(period: Duration) -> Self {
        Self { period, lines_max: 1, begun: None, lines: 0, left_out: 0 }
    }

    /// So many lines in the period, at least one.
    pub fn with_lines(self, lines_max: u32) -> Self {
        Self { lines_max: lines_max.max(1), ..self }
    }

    /// The number of lines left out since the last one, if a line may be written at `now`; none if this one is left out too.
    pub fn permit(&mut self, now: Instant) -> Option<u64> {
        let same_period = self.begun.is_some_and(|begun| now.saturating_duration_since(begun) < self.period);
        if !same_period {
            (self.begun, self.lines) = (Some(now), 0);
        }
        if self.lines >= self.lines_max {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_period_with_the_number_of_those_left_out() {
        let (begin, mut rate) = (Instant::now(), LogRate::new(Duration::from_secs(60)));
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(rate.permit(at(0)), Some(0));
        for second in 1..60 {
            assert_eq!(rate.permit(at(second)), None);
        }
        assert_eq!(rate.permit(at(60)), Some(59));
        assert_eq!(rate.permit(at(61)), None);
        assert_eq!(rate.permit(at(500)), Some(1));
        assert_eq!(rate.permit(at(600)), Some(0));
    }

    #[test]
    fn a_few_lines_a_period() {
        let begin = Instant::now();
        let mut rate = LogRate::new(Duration::from_secs(60)).with_lines(3);
        let written = (0..120).filter(|second| rate.permit(begin + Duration::from_secs(*second)).is_some());
        assert_eq!(written.collect::<Vec<_>>(), [0, 1, 2, 60, 61, 62]);
        assert_eq!(rate.permit(begin + Duration::from_secs(120)), Some(57));
    }
}
