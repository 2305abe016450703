//! Agreement of our numbers with the published ones.

use std::collections::BTreeMap;

use serde::Serialize;

use super::causes;
use super::published_cells::{BetterDirection, PublishedCell};
use super::results::CellResult;
use crate::experiment::estimate::Estimate;

/// Standard errors within which two numbers agree.
const AGREE: f64 = 2.0;

/// Our number against the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within two standard errors.
    Within,
    /// Further off, to the better side.
    Better,
    /// Further off, to the worse side.
    Worse,
    /// Further off, where neither side is better.
    Other,
    /// One trial, or none with a value: no standard error.
    NoError,
    /// No trial.
    NotRun,
    /// It cannot be run here.
    Unavailable,
}

impl Verdict {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 7] = [
        Self::Within,
        Self::Better,
        Self::Worse,
        Self::Other,
        Self::NoError,
        Self::NotRun,
        Self::Unavailable,
    ];

    /// Its name in tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Within => "within 2 s.e.",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Other => "other",
            Self::NoError => "no error",
            Self::NotRun => "not run",
            Self::Unavailable => "not possible",
        }
    }
}

/// Our number less the published one, in standard errors of the difference; none without an error. Where none is published,
/// ours is taken for both.
pub fn z_score(ours: &Estimate, cell: &PublishedCell) -> Option<f64> {
    let own = ours.standard_error?;
    let theirs = cell.standard_error().unwrap_or(own);
    let error = own.hypot(theirs);
    (error > 0.0).then(|| (ours.mean - cell.value) / error)
}

/// The verdict on a number of which there are trials.
pub fn verdict(ours: &Estimate, cell: &PublishedCell) -> Verdict {
    let Some(z) = z_score(ours, cell) else {
        return if ours.standard_error == Some(0.0) && ours.mean == cell.value {
            Verdict::Within
        } else {
            Verdict::NoError
        };
    };
    match cell.better {
        _ if z.abs() <= AGREE => Verdict::Within,
        BetterDirection::None => Verdict::Other,
        BetterDirection::Higher if z > 0.0 => Verdict::Better,
        BetterDirection::Lower if z < 0.0 => Verdict::Better,
        _ => Verdict::Worse,
    }
}

/// Numbers by verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VerdictCounts(pub BTreeMap<Verdict, usize>);

impl VerdictCounts {
    /// The counts of some results.
    pub fn of<'a>(results: impl IntoIterator<Item = &'a CellResult>) -> Self {
        let mut counts = BTreeMap::new();
        results.into_iter().for_each(|result| *counts.entry(result.verdict).or_insert(0) += 1);
        Self(counts)
    }

    /// Numbers with this verdict.
    pub fn get(&self, verdict: Verdict) -> usize {
        self.0.get(&verdict).copied().unwrap_or(0)
    }
}

/// Worse numbers of one table and data set, with their cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorseGroup {
    /// The label of the table.
    pub table: String,
    /// The data set.
    pub dataset: String,
    /// How many.
    pub count: usize,
    /// Why.
    pub cause: &'static str,
}

/// The worse numbers, by table and data set.
pub fn worse_groups(results: &[CellResult]) -> Vec<WorseGroup> {
    let mut groups: Vec<WorseGroup> = Vec::new();
    for result in results.iter().filter(|result| result.verdict == Verdict::Worse) {
        let cell = result.cell;
        let cause = causes::cause(result);
        let kin = |group: &&mut WorseGroup| {
            group.table == cell.table && group.dataset == cell.dataset && group.cause == cause
        };
        match groups.iter_mut().find(kin) {
            Some(group) => group.count += 1,
            None => groups.push(WorseGroup {
                table: cell.table.clone(),
                dataset: cell.dataset.clone(),
                count: 1,
                cause,
            }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::published;
    use super::*;

    fn ours(values: &[f64]) -> Estimate {
        Estimate::of(values.iter().copied().map(Some)).unwrap()
    }

    /// Published 0.647 ± 0.018; ours with an error of 0.01: the difference has one of 0.0206.
    #[test]
    fn numbers_agree_within_two_errors_of_the_difference() {
        let cell = published().cells.iter().find(|cell| cell.text == "0.647(0.018)").unwrap();
        let off = |mean: f64| ours(&[mean - 0.01, mean + 0.01]);
        assert!((z_score(&off(0.647 + 0.0206), cell).unwrap() - 1.0).abs() < 0.01);
        assert_eq!(verdict(&off(0.61), cell), Verdict::Within);
        assert_eq!(verdict(&off(0.60), cell), Verdict::Worse);
        assert_eq!(verdict(&off(0.70), cell), Verdict::Better);
        assert_eq!(verdict(&ours(&[0.647]), cell), Verdict::NoError);
    }

    #[test]
    fn lower_errors_are_better() {
        let cell = published().of("table:average-online-acc").find(|cell| cell.dataset == "electricity");
        assert_eq!(verdict(&ours(&[0.1, 0.11]), cell.unwrap()), Verdict::Better);
    }

    #[test]
    fn where_no_error_is_published_ours_counts_twice() {
        let cell = published().of("table:fairness-varying-beta").next().unwrap();
        let estimate = ours(&[cell.value - 0.02, cell.value + 0.04]);
        assert!((z_score(&estimate, cell).unwrap() - 0.01 / (0.03 * 2f64.sqrt())).abs() < 1e-9);
    }
}
