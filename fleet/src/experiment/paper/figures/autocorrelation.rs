//! Autocorrelation of the contributions of the node of the lowest standing.

use super::lines::{drawn, mean_line};
use super::{DrawnFigure, FigureSource};
use crate::data::Dataset;
use crate::experiment::estimate::Estimate;
use crate::experiment::labels::dataset_label;
use crate::experiment::paper::document::WordTable;
use crate::experiment::runner::TrialRecords;
use crate::experiment::setup::Setup;
use crate::experiment::variant::Variant;
use crate::scenario::Corruption;

const DATASETS: [Dataset; 5] =
    [Dataset::Mnist, Dataset::Cifar10, Dataset::Hft, Dataset::Electricity, Dataset::Pathmnist];

pub(super) fn setups(source: &FigureSource<'_>) -> Vec<Setup> {
    let of = |dataset| source.scope.setup(dataset, Corruption::LabelNoise, Variant::Paper);
    source.present(&DATASETS).into_iter().map(of).collect()
}

pub(super) fn draw(source: &FigureSource<'_>, records: &TrialRecords) -> DrawnFigure {
    let mut figure = DrawnFigure::default();
    let heads = ["data", "lag 1", "lag 2", "lags outside ±1.96/√n", "band"];
    let mut table = WordTable {
        title: "autocorrelation of the contributions of the last node, label noise".into(),
        heads: heads.map(str::to_owned).to_vec(),
        ..WordTable::default()
    };
    for setup in setups(source) {
        let found = source.records(&setup, records);
        if found.is_empty() {
            continue;
        }
        let name = dataset_label(setup.dataset);
        let lags: Vec<Vec<Option<f64>>> = (found.iter())
            .map(|record| record.details.autocorrelation.iter().skip(1).copied().map(Some).collect())
            .collect();
        let id = format!("acf-{}", setup.dataset.name());
        let line = mean_line("mean", 0, &lags);
        figure.drawings.push((name.into(), drawn(&id, name, ("lag", "autocorrelation"), &[line], &[])));
        let at = |lag: usize| Estimate::of(lags.iter().map(|lags| lags.get(lag - 1).copied().flatten()));
        let outside = |record: &&crate::experiment::record::TrialRecord| {
            let bound = record.details.autocorrelation_bound?;
            let lags = record.details.autocorrelation.get(1..)?;
            let count = lags.iter().filter(|lag| lag.abs() > bound).count();
            (!lags.is_empty()).then(|| count as f64 / lags.len() as f64)
        };
        let cells = [
            at(1),
            at(2),
            Estimate::of(found.iter().map(outside)),
            Estimate::of(found.iter().map(|record| record.details.autocorrelation_bound)),
        ];
        let shown = |estimate: Option<Estimate>| {
            estimate.map_or("–".into(), |estimate| estimate.text(3, found.len()))
        };
        table.rows.push(std::iter::once(name.to_owned()).chain(cells.map(shown)).collect());
    }
    table.notes.push("Of independent contributions, 0.05 of the lags lie outside the band.".into());
    figure.tables.push(table);
    figure
}
