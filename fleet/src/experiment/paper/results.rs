//! Our numbers beside the published ones.

use super::agreement::{Verdict, verdict, z_score};
use super::grid::{CellPlan, PaperScope, SecondMeasure, plan};
use super::items::Unavailable;
use super::published_cells::{PublishedCell, published};
use crate::experiment::estimate::Estimate;
use crate::experiment::measure::Measure;
use crate::experiment::runner::TrialRecords;
use crate::experiment::setup::Setup;
use crate::experiment::table::seeds;

/// One published number, and ours.
#[derive(Debug, Clone)]
pub struct CellResult {
    /// The published one.
    pub cell: &'static PublishedCell,
    /// The trials behind ours, or why there are none.
    pub plan: Result<CellPlan, Unavailable>,
    /// Ours.
    pub ours: Option<Estimate>,
    /// Ours of the number in brackets, where it is no standard error.
    pub second: Option<Estimate>,
    /// The same with equally good data for all nodes, where it is a correlation with ζ.
    pub level_0: Option<Estimate>,
    /// ρ(staleness) of the same trials, where it is ρ of losses.
    pub staleness: Option<Estimate>,
    /// The score without a model on the same data, where it is a score.
    pub naive: Option<Estimate>,
    /// ours less published, in standard errors.
    pub z: Option<f64>,
    /// Whether they agree.
    pub verdict: Verdict,
}

/// The setups of all trials that a number needs, the control's included.
pub fn setups(planned: &CellPlan, trials: u64, with_control: bool) -> Vec<Setup> {
    let mut wanted = vec![planned.setup.clone()];
    if let Some(SecondMeasure::Against(other)) = &planned.second {
        wanted.push((**other).clone());
    }
    if with_control && planned.measure.is_correlation() {
        wanted.extend(planned.setup.control());
    }
    wanted.iter().flat_map(|setup| seeds(setup, trials)).collect()
}

/// The results of a table, one a published number.
pub fn results(label: &str, scope: &PaperScope, trials: u64, records: &TrialRecords) -> Vec<CellResult> {
    published().of(label).map(|cell| result(cell, scope, trials, records)).collect()
}

fn result(
    cell: &'static PublishedCell,
    scope: &PaperScope,
    trials: u64,
    records: &TrialRecords,
) -> CellResult {
    let planned = plan(cell, scope);
    let over = |setup: &Setup, measure: Measure, unit: f64| {
        let found = seeds(setup, trials).filter_map(|setup| records.get(&setup));
        Estimate::of(found.map(|record| measure.of(record).map(|value| unit * value)))
    };
    let Ok(CellPlan { setup, measure, unit, second }) = &planned else {
        let verdict = Verdict::Unavailable;
        return CellResult {
            cell,
            plan: planned,
            ours: None,
            second: None,
            level_0: None,
            staleness: None,
            naive: None,
            z: None,
            verdict,
        };
    };
    let ours = over(setup, *measure, *unit);
    let second = second.as_ref().and_then(|second| match second {
        SecondMeasure::Same(measure) => over(setup, *measure, 1.0),
        SecondMeasure::Against(other) => {
            let (here, there) = (ours.as_ref()?, over(other, *measure, *unit)?);
            Estimate::of([Some(here.mean - there.mean)])
        }
    });
    let control = setup.control().filter(|_| measure.is_correlation());
    let is_run = seeds(setup, trials).any(|setup| records.get(&setup).is_some());
    let verdict = match &ours {
        Some(ours) => verdict(ours, cell),
        None if is_run => Verdict::NoError,
        None => Verdict::NotRun,
    };
    let is_score = matches!(measure, Measure::OnlineMean | Measure::OnlineMin | Measure::OnlineMax);
    CellResult {
        z: ours.as_ref().and_then(|ours| z_score(ours, cell)),
        level_0: control.and_then(|control| over(&control, *measure, *unit)),
        staleness: if *measure == Measure::RhoLoss { over(setup, Measure::RhoStaleness, 1.0) } else { None },
        naive: if is_score { over(setup, Measure::Naive, 1.0) } else { None },
        verdict,
        cell,
        ours,
        second,
        plan: planned,
    }
}
