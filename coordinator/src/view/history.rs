//! Histories of bounded length: the longer a federation runs, the more rounds one entry tells of.

use serde::Serialize;

/// What can be told of several rounds at once.
pub(super) trait Merge {
    /// Takes in what came right after.
    fn merge(&mut self, later: Self);
}

/// The rounds one entry tells of, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The first.
    pub from: u32,
    /// The last.
    pub to: u32,
}

impl Span {
    /// How many.
    pub fn rounds(&self) -> u32 {
        self.to - self.from + 1
    }
}

/// What the next round does to every series that shares one time axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It begins an entry.
    Begin,
    /// It belongs to the last entry.
    Extend,
    /// Neighbours are merged first, then it begins an entry.
    Halve,
}

/// The time axis of a history: at most `capacity` spans, all of the same width but the last.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    spans: Vec<Span>,
    capacity: usize,
    /// Rounds in a full span.
    width: u32,
    /// Rounds in the last span.
    filled: u32,
}

impl Axis {
    /// An empty axis; `capacity` is even, so that neighbours come in pairs.
    pub(super) fn new(capacity: usize) -> Self {
        debug_assert!(capacity >= 2 && capacity.is_multiple_of(2));
        Self { spans: Vec::new(), capacity, width: 1, filled: 0 }
    }

    /// The spans, oldest first.
    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Takes in a round, and says what every series must do.
    pub(super) fn advance(&mut self, round: u32) -> Step {
        let full = self.filled == self.width || self.spans.is_empty();
        if !full && let Some(last) = self.spans.last_mut() {
            last.to = round;
            self.filled += 1;
            return Step::Extend;
        }
        let halve = self.spans.len() == self.capacity;
        if halve {
            self.spans =
                self.spans.chunks(2).map(|pair| Span { from: pair[0].from, to: pair[1].to }).collect();
            self.width *= 2;
        }
        self.spans.push(Span { from: round, to: round });
        self.filled = 1;
        if halve { Step::Halve } else { Step::Begin }
    }
}

/// One series on an [`Axis`]; it may begin later than the axis does.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series<T> {
    /// Spans before the first entry.
    missing: usize,
    entries: Vec<T>,
}

impl<T> Default for Series<T> {
    fn default() -> Self {
        Self { missing: 0, entries: Vec::new() }
    }
}

impl<T: Merge> Series<T> {
    /// Takes in a round's entry, after `axis` has taken in the round and said what to do.
    pub(super) fn put(&mut self, axis: &Axis, step: Step, entry: T) {
        if step == Step::Halve {
            self.halve();
        }
        match self.entries.last_mut() {
            Some(last) if step == Step::Extend => last.merge(entry),
            Some(_) => self.entries.push(entry),
            None => {
                self.missing = axis.spans.len() - 1;
                self.entries.push(entry);
            }
        }
    }

    /// The entries with their spans, oldest first.
    pub(super) fn over<'a>(&'a self, axis: &'a Axis) -> impl Iterator<Item = (Span, &'a T)> {
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

    impl Merge for u32 {
        fn merge(&mut self, later: Self) {
            *self += later;
        }
    }

    /// A series of ones from `begins` on, over so many rounds, so that an entry counts its rounds.
    fn ones(rounds: u32, begins: u32) -> (Axis, Series<u32>) {
        let (mut axis, mut series) = (Axis::new(8), Series::default());
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
