//! The running example: recall of the designated nodes, and changes of standings, over rounds.

use super::lines::{drawn, mean_line};
use super::{DrawnFigure, FigureSource};
use crate::data::Dataset;
use crate::experiment::estimate::Estimate;
use crate::experiment::labels::{corruption_label, dataset_label};
use crate::experiment::paper::document::WordTable;
use crate::experiment::runner::TrialRecords;
use crate::experiment::setup::Setup;
use crate::scenario::Corruption;

/// α whose stopping round the text names.
const ALPHA: f64 = 0.5;
/// Four kinds of bad data, that of the text first.
const KINDS: [Corruption; 4] =
    [Corruption::LabelNoise, Corruption::Quantity, Corruption::MissingValues, Corruption::FeatureNoise];
/// Published: T₀.₅, ‖ψ_T − ψ*‖_∞ and the recall at the end.
const PUBLISHED: [&str; 3] = ["55", "0.0044", "1"];

pub(super) fn example(source: &FigureSource<'_>) -> Vec<Setup> {
    let of = |dataset| source.scope.running_example(dataset, Corruption::LabelNoise);
    source.present(&[Dataset::Mnist]).into_iter().map(of).collect()
}

pub(super) fn kinds(source: &FigureSource<'_>) -> Vec<Setup> {
    let datasets = source.present(&[Dataset::Mnist, Dataset::Cifar10]);
    let of = |dataset| KINDS.map(|kind| source.scope.running_example(dataset, kind));
    datasets.into_iter().flat_map(of).collect()
}

pub(super) fn draw_example(source: &FigureSource<'_>, records: &TrialRecords) -> DrawnFigure {
    let mut figure = DrawnFigure::default();
    for setup in example(source) {
        let found = source.records(&setup, records);
        let recall = mean_line("recall", 0, found.iter().map(|record| &record.details.recall));
        let changes = mean_line("change", 6, found.iter().map(|record| &record.details.changes));
        for (name, line) in
            [("recall of the designated nodes", recall), ("largest change of a standing", changes)]
        {
            let id = format!("example-{}", line.name);
            figure.drawings.push((name.into(), drawn(&id, name, ("round", name), &[line], &[])));
        }
        let stop = |p: &[Option<f64>]| p.iter().position(|p| p.is_some_and(|p| p >= ALPHA));
        let stops: Vec<Option<usize>> = found.iter().map(|record| stop(&record.details.p_tested)).collect();
        let at = |values: &[Option<f64>], round: Option<usize>| values.get(round?).copied().flatten();
        let estimates = [
            Estimate::of(stops.iter().map(|stop| stop.map(|round| (round + 1) as f64))),
            Estimate::of(found.iter().zip(&stops).map(|(record, stop)| at(&record.details.distances, *stop))),
            Estimate::of(found.iter().map(|record| record.details.recall.last().copied().flatten())),
        ];
        let names = ["T₀.₅", "‖ψ_T − ψ*‖∞", "recall at the end"];
        let row = |((name, estimate), published): ((&str, Option<Estimate>), &str)| {
            let shown = estimate.map_or("–".into(), |estimate| estimate.text(4, found.len()));
            vec![name.to_owned(), shown, published.to_owned()]
        };
        figure.tables.push(WordTable {
            title: format!("running example, {}, label noise", dataset_label(setup.dataset)),
            heads: ["", "ours", "published"].map(str::to_owned).to_vec(),
            rows: names.into_iter().zip(estimates).zip(PUBLISHED).map(row).collect(),
            notes: Vec::new(),
        });
    }
    figure
}

pub(super) fn draw_kinds(source: &FigureSource<'_>, records: &TrialRecords) -> DrawnFigure {
    let mut figure = DrawnFigure::default();
    for dataset in source.present(&[Dataset::Mnist, Dataset::Cifar10]) {
        let mut table = WordTable {
            title: format!("recall of the designated nodes, {}", dataset_label(dataset)),
            heads: ["bad data", "after 25 rounds", "50", "100", "at the end"].map(str::to_owned).to_vec(),
            ..WordTable::default()
        };
        let mut lines = Vec::new();
        for (colour, kind) in KINDS.into_iter().enumerate() {
            let found = source.records(&source.scope.running_example(dataset, kind), records);
            let at = |round: Option<usize>| {
                let values = found.iter().map(|record| {
                    let recall = &record.details.recall;
                    recall.get(round.unwrap_or(recall.len().saturating_sub(1))).copied().flatten()
                });
                Estimate::of(values).map_or("–".into(), |estimate| estimate.text(2, found.len()))
            };
            let label = corruption_label(kind);
            let cells = [Some(24), Some(49), Some(99), None].map(at);
            table.rows.push(std::iter::once(label.clone()).chain(cells).collect());
            lines.push(mean_line(&label, colour, found.iter().map(|record| &record.details.recall)));
        }
        let name = table.title.clone();
        let id = format!("kinds-{}", dataset.name());
        figure.drawings.push((name.clone(), drawn(&id, &name, ("round", "recall"), &lines, &[])));
        figure.tables.push(table);
    }
    figure
}
