//! Labelled rows as samples.

use std::collections::VecDeque;

use evenhand_models::{Batch, Targets};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::replay::{SampleChoice, choose};
use super::{ReadingCounts, ReadingsFloor, TrainingBatch};
use crate::config::RowsConfig;
use crate::reading::{LabelledRow, RowTarget};

/// The newest rows, bounded in number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowsWindow {
    settings: RowsConfig,
    rows: VecDeque<LabelledRow>,
    /// Number of the newest row, counted from the first that ever came.
    newest: i64,
    /// Rows up to this number have been trained on.
    used: i64,
    /// Rows up to this number have been measured at reference weights.
    measured: i64,
    counts: ReadingCounts,
}

impl RowsWindow {
    /// No rows yet.
    pub fn new(settings: RowsConfig) -> Self {
        Self {
            settings,
            rows: VecDeque::new(),
            newest: 0,
            used: 0,
            measured: 0,
            counts: ReadingCounts::default(),
        }
    }

    /// Adds one row, or counts it as refused.
    pub fn add(&mut self, row: LabelledRow) {
        let target_is_finite = match row.target {
            RowTarget::Class(_) => true,
            RowTarget::Value(value) | RowTarget::Chosen { value, .. } => value.is_finite(),
        };
        let fits = row.features.len() == self.settings.shape.iter().product::<usize>();
        if !fits || !target_is_finite || row.features.iter().any(|feature| !feature.is_finite()) {
            self.counts.refused += 1;
            return;
        }
        self.rows.push_back(row);
        self.newest += 1;
        self.counts.accepted += 1;
        let surplus = self.rows.len().saturating_sub(self.settings.history_rows);
        self.rows.drain(..surplus);
    }

    /// The newest rows that were not used yet and the configured share of rows used before, at most `samples_max`, if
    /// there are enough for the floor, at least half of them new, and their targets are of one kind.
    pub fn batch(
        &self,
        samples_max: usize,
        floor: ReadingsFloor,
        generator: &mut impl Rng,
    ) -> Option<TrainingBatch> {
        let first = self.first_after(self.used);
        let fresh: Vec<usize> = (first..self.rows.len()).collect();
        let share = self.settings.replay_share;
        let old = if share == 0.0 { Vec::new() } else { (0..first).collect() };
        let choice = choose(&fresh, old, samples_max, share, generator)?;
        let enough = choice.all.len() >= floor.least() && choice.fresh >= floor.fresh_least();
        enough.then(|| self.samples_at(&choice))?
    }

    /// The newest rows that were not measured yet, at most `samples_max`, if there are enough for the floor and their targets
    /// are of one kind.
    pub fn unmeasured(&self, samples_max: usize, floor: ReadingsFloor) -> Option<TrainingBatch> {
        let newest = self.rows.len().saturating_sub(samples_max);
        let all: Vec<usize> = (self.first_after(self.measured).max(newest)..self.rows.len()).collect();
        let fresh = all.len();
        (fresh >= floor.least()).then(|| self.samples_at(&SampleChoice { all, fresh }))?
    }

    /// The place of the first row in memory after number `upto`.
    fn first_after(&self, upto: i64) -> usize {
        let newer = usize::try_from(self.newest - upto).unwrap_or(0);
        self.rows.len().saturating_sub(newer)
    }

    fn samples_at(&self, choice: &SampleChoice) -> Option<TrainingBatch> {
        let rows = choice.all.iter().map(|at| &self.rows[*at]);
        let samples = rows.len();
        let targets = targets(rows.clone().map(|row| row.target))?;
        let inputs = rows.flat_map(|row| row.features.iter().copied()).collect();
        let shape = std::iter::once(samples).chain(self.settings.shape.iter().copied()).collect();
        let batch = Batch { inputs, shape, targets };
        Some(TrainingBatch { batch, samples, fresh: choice.fresh, upto: self.newest })
    }

    /// Counts the rows up to number `upto` as used.
    pub fn mark_used(&mut self, upto: i64) {
        self.used = self.used.max(upto.min(self.newest));
    }

    /// Counts the rows up to number `upto` as measured.
    pub fn mark_measured(&mut self, upto: i64) {
        self.measured = self.measured.max(upto.min(self.newest));
    }

    /// Its configuration.
    pub fn settings(&self) -> &RowsConfig {
        &self.settings
    }

    /// Counts of the rows.
    pub fn counts(&self) -> ReadingCounts {
        self.counts
    }
}

/// Targets of one kind as a batch has them; none when there are several kinds, or no targets.
fn targets(each: impl Iterator<Item = RowTarget> + Clone) -> Option<Targets> {
    match each.clone().next()? {
        RowTarget::Class(_) => {
            let class = |target| if let RowTarget::Class(class) = target { Some(class) } else { None };
            each.map(class).collect::<Option<_>>().map(Targets::Classes)
        }
        RowTarget::Value(_) => {
            let value = |target| if let RowTarget::Value(value) = target { Some(value) } else { None };
            each.map(value).collect::<Option<_>>().map(Targets::Values)
        }
        RowTarget::Chosen { .. } => {
            let chosen = |target| {
                if let RowTarget::Chosen { column, value } = target { Some((column, value)) } else { None }
            };
            let (columns, values) = each.map(chosen).collect::<Option<Vec<_>>>()?.into_iter().unzip();
            Some(Targets::Chosen { columns, values })
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    fn rows(history_rows: usize, targets: &[RowTarget]) -> RowsWindow {
        let mut rows = RowsWindow::new(RowsConfig { shape: vec![2], history_rows, replay_share: 0.0 });
        for (number, target) in (0u8..).zip(targets) {
            rows.add(LabelledRow { features: vec![f32::from(number), 1.0], target: *target });
        }
        rows
    }

    fn batch(rows: &RowsWindow, samples_max: usize) -> Option<TrainingBatch> {
        rows.batch(samples_max, ReadingsFloor::NONE, &mut ChaCha8Rng::seed_from_u64(1))
    }

    #[test]
    fn a_share_of_the_batch_is_replayed() {
        let mut rows = rows(9, &[RowTarget::Class(0); 6]);
        rows.settings.replay_share = 0.5;
        rows.mark_used(4);
        let taken = batch(&rows, 8).unwrap();
        assert_eq!((taken.samples, taken.fresh), (4, 2), "two new, two old");
        assert_eq!(taken.batch.inputs[4..], [4.0, 1.0, 5.0, 1.0], "the new ones come last");
    }

    #[test]
    fn fewer_rows_than_the_floor_wait() {
        let mut rows = rows(9, &[RowTarget::Class(0); 5]);
        let floor = ReadingsFloor::new(4);
        let taken = rows.batch(9, floor, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
        assert_eq!((taken.samples, rows.unmeasured(3, floor)), (5, None), "three are too few, whoever asks");
        rows.mark_used(taken.upto);
        rows.mark_measured(taken.upto);
        (0..3).for_each(|_| rows.add(LabelledRow { features: vec![1.0; 2], target: RowTarget::Class(1) }));
        assert_eq!(rows.batch(9, floor, &mut ChaCha8Rng::seed_from_u64(1)), None);
        assert_eq!(rows.unmeasured(9, floor), None);
        rows.add(LabelledRow { features: vec![1.0; 2], target: RowTarget::Class(1) });
        assert_eq!(rows.unmeasured(9, floor).unwrap().samples, 4);
    }

    #[test]
    fn each_row_is_used_once_and_the_newest_first() {
        let mut rows =
            rows(3, &[RowTarget::Class(0), RowTarget::Class(1), RowTarget::Class(2), RowTarget::Class(3)]);
        let taken = batch(&rows, 2).unwrap();
        assert_eq!(taken.batch.targets, Targets::Classes(vec![2, 3]));
        assert_eq!((taken.batch.inputs, taken.batch.shape), (vec![2.0, 1.0, 3.0, 1.0], vec![2, 2]));
        assert_eq!(batch(&rows, 10).unwrap().samples, 3, "the oldest was dropped");
        rows.mark_used(taken.upto);
        assert_eq!(batch(&rows, 2), None);
    }

    #[test]
    fn values_are_targets_too_but_never_beside_classes() {
        let values = rows(9, &[RowTarget::Value(0.5), RowTarget::Value(1.5)]);
        assert_eq!(batch(&values, 9).unwrap().batch.targets, Targets::Values(vec![0.5, 1.5]));
        let chosen = rows(
            9,
            &[RowTarget::Chosen { column: 2, value: 0.5 }, RowTarget::Chosen { column: 0, value: 1.5 }],
        );
        let expected = Targets::Chosen { columns: vec![2, 0], values: vec![0.5, 1.5] };
        assert_eq!(batch(&chosen, 9).unwrap().batch.targets, expected);
        assert_eq!(batch(&rows(9, &[RowTarget::Value(0.5), RowTarget::Class(1)]), 9), None);
    }

    #[test]
    fn rows_that_do_not_fit_are_counted_and_refused() {
        let mut rows = rows(9, &[RowTarget::Value(f32::NAN)]);
        rows.add(LabelledRow { features: vec![1.0], target: RowTarget::Class(0) });
        rows.add(LabelledRow { features: vec![1.0, f32::INFINITY], target: RowTarget::Class(0) });
        assert_eq!((rows.counts().refused, batch(&rows, 9)), (3, None));
    }
}
