//! Histories of bounded length: the longer a federation runs, the more rounds share one entry.

use serde::Serialize;

/// An entry that can stand for several neighbouring rounds.
pub(super) trait MergeLater {
    /// Adds the entry of the rounds right after.
    fn merge(&mut self, later: Self);
}

/// The rounds of one entry, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RoundSpan {
    /// The first.
    pub from: u32,
    /// The last.
    pub to: u32,
}

impl RoundSpan {
    /// Their number.
    pub fn rounds(&self) -> u32 {
        self.to - self.from + 1
    }
}

/// The change of an axis that every series on it has to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AxisStep {
    /// The round begins an entry.
    Begin,
    /// The round belongs to the last entry.
    Extend,
    /// Neighbours are merged first, then the round begins an entry.
    Halve,
}

/// The time axis of a history: at most `capacity` spans, all of the same width but the last.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RoundAxis {
    spans: Vec<RoundSpan>,
    capacity: usize,
    /// Rounds in a full span.
    width: u32,
    /// Rounds in the last span.
    filled: u32,
}

impl RoundAxis {
    /// An empty axis; `capacity` is even, so that neighbours come in pairs.
    pub(super) fn new(capacity: usize) -> Self {
        debug_assert!(capacity >= 2 && capacity.is_multiple_of(2));
        Self { spans: Vec::new(), capacity, width: 1, filled: 0 }
    }

    /// The spans, oldest first.
    pub(super) fn spans(&self) -> &[RoundSpan] {
        &self.spans
    }

    /// Adds a round; returns the change for every series.
    pub(super) fn advance(&mut self, round: u32) -> AxisStep {
        let full = self.filled == self.width || self.spans.is_empty();
        if !full && let Some(last) = self.spans.last_mut() {
            last.to = round;
            self.filled += 1;
            return AxisStep::Extend;
        }
        let halve = self.spans.len() == self.capacity;
        if halve {
            self.spans =
                self.spans.chunks(2).map(|pair| RoundSpan { from: pair[0].from, to: pair[1].to }).collect();
            self.width *= 2;
        }
        self.spans.push(RoundSpan { from: round, to: round });
        self.filled = 1;
        if halve { AxisStep::Halve } else { AxisStep::Begin }
    }
}

/// One series on an [`RoundAxis`]; it may begin later than the axis does.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ThinnedSeries<T> {
    /// Spans before the first entry.
    missing: usize,
    entries: Vec<T>,
}

impl<T> Default for ThinnedSeries<T> {
    fn default() -> Self {
        Self { missing: 0, entries: Vec::new() }
    }
}

impl<T: MergeLater> ThinnedSeries<T> {
    /// Adds a round's entry, after `axis` has added the round and returned `step`.
    pub(super) fn put(&mut self, axis: &RoundAxis, step: AxisStep, entry: T) {
        if step == AxisStep::Halve {
            self.halve();
        }
        match self.entries.last_mut() {
            Some(last) if step == AxisStep::Extend => last.merge(entry),
            Some(_) => self.entries.push(entry),
            None => {
                self.missing = axis.spans.len() - 1;
                self.entries.push(entry);
            }
        }
    }

    /// The entries with their spans, oldest first.
    pub(super) fn over<'a>(&'a self, axis: &'a RoundAxis) -> impl Iterator<Item = (RoundSpan, &'a T)> {
        axis.spans.iter().copied().skip(self.missing).zip(&self.entries)
    }

    /// Spans before the first entry.
    pub(super) fn missing(&self) -> usize {
        self.missing
    }

    /// The entries, oldest first.
    pub(super) fn entries(&self) -> &[T] {
        &self.entries
    }

    fn halve(&mut self) {
        let mut merged: Vec<T> = Vec::with_capacity(self.entries.len() / 2 + 1);
        let first = self.missing / 2;
        for (index, entry) in self.entries.drain(..).enumerate() {
            let place = (self.missing + index) / 2 - first;
            match merged.get_mut(place) {
                Some(earlier) => earlier.merge(entry),
                None => merged.push(entry),
            }
        }
        self.missing = first;
        self.entries = merged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl MergeLater for u32 {
        fn merge(&mut self, later: Self) {
            *self += later;
        }
    }

    /// A series of ones from `begins` on, over so many rounds, so that an entry counts its rounds.
    fn ones(rounds: u32, begins: u32) -> (RoundAxis, ThinnedSeries<u32>) {
        let (mut axis, mut series) = (RoundAxis::new(8), ThinnedSeries::default());
        for round in 1..=rounds {
            let step = axis.advance(round);
            if round >= begins {
                series.put(&axis, step, 1);
            } else {
                assert!(series.entries().is_empty());
            }
        }
        (axis, series)
    }

    #[test]
    fn every_round_is_in_exactly_one_entry_however_long_it_gets() {
        for rounds in 1..=300 {
            let (axis, series) = ones(rounds, 1);
            assert!(axis.spans().len() <= 8);
            assert_eq!(axis.spans().first().map(|span| span.from), Some(1));
            assert_eq!(axis.spans().last().map(|span| span.to), Some(rounds));
            assert!(axis.spans().windows(2).all(|pair| pair[0].to + 1 == pair[1].from));
            assert_eq!(series.over(&axis).count(), axis.spans().len());
            for (span, count) in series.over(&axis) {
                assert_eq!(*count, span.rounds(), "{rounds} rounds, {span:?}");
            }
        }
    }

    #[test]
    fn a_series_that_begins_later_stays_aligned() {
        for begins in 1..60 {
            for rounds in begins..150 {
                let (axis, series) = ones(rounds, begins);
                for (span, count) in series.over(&axis) {
                    assert_eq!(*count, span.to - span.from.max(begins) + 1, "{begins} {rounds} {span:?}");
                }
                assert_eq!(series.entries().iter().sum::<u32>(), rounds - begins + 1);
            }
        }
    }
}
