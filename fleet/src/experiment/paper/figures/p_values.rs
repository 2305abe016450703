//! p of the stop rule over rounds, with and without sub-sampling.

use super::lines::{drawn, mean_line};
use super::{DrawnFigure, FigureSource};
use crate::data::Dataset;
use crate::experiment::estimate::Estimate;
use crate::experiment::labels::{corruption_label, dataset_label};
use crate::experiment::paper::document::WordTable;
use crate::experiment::runner::TrialRecords;
use crate::experiment::setup::Setup;
use crate::scenario::Corruption;

/// Standings have converged, by the paper, where p first reaches this.
const CONVERGED: f64 = 0.99;
const DATASETS: [Dataset; 2] = [Dataset::Mnist, Dataset::Cifar10];
const KINDS: [Corruption; 2] = [Corruption::LabelNoise, Corruption::FeatureNoise];

pub(super) fn setups(source: &FigureSource<'_>) -> Vec<Setup> {
    let of = |dataset| KINDS.map(|kind| source.scope.running_example(dataset, kind));
    source.present(&DATASETS).into_iter().flat_map(of).collect()
}

pub(super) fn draw(source: &FigureSource<'_>, records: &TrialRecords) -> DrawnFigure {
    panels(source, records, &setups(source))
}

/// One drawing a setup, and the round in which p first reaches 0.99.
pub(super) fn panels(source: &FigureSource<'_>, records: &TrialRecords, setups: &[Setup]) -> DrawnFigure {
    let mut figure = DrawnFigure::default();
    let mut table = WordTable {
        title: "rounds until p reaches 0.99".into(),
        heads: ["data", "some nodes, τ = 20", "all nodes, τ = 35"].map(str::to_owned).to_vec(),
        ..WordTable::default()
    };
    for setup in setups {
        let found = source.records(setup, records);
        let name = format!("{}, {}", dataset_label(setup.dataset), corruption_label(setup.corruption));
        let lines = [
            mean_line("some nodes", 6, found.iter().map(|record| &record.details.p_tested)),
            mean_line("all nodes", 10, found.iter().map(|record| &record.details.p_all)),
        ];
        let reached = |p: &[Option<f64>]| {
            p.iter().position(|p| p.is_some_and(|p| p >= CONVERGED)).map(|round| (round + 1) as f64)
        };
        let estimates = [
            Estimate::of(found.iter().map(|record| reached(&record.details.p_tested))),
            Estimate::of(found.iter().map(|record| reached(&record.details.p_all))),
        ];
        let shown = |estimate: Option<Estimate>| {
            estimate.map_or("never".into(), |estimate| estimate.text(1, found.len()))
        };
        table.rows.push(std::iter::once(name.clone()).chain(estimates.map(shown)).collect());
        let id = format!("p-{}-{}", setup.dataset.name(), setup.corruption.name());
        figure.drawings.push((format!("p, {name}"), drawn(&id, &name, ("round", "p"), &lines, &[])));
    }
    figure.tables.push(table);
    figure
}
