//! Measuring and drawing at once: ten nodes with equally good data, of which those that were measured high are drawn more.

use super::lines::{drawn, mean_line};
use super::{DrawnFigure, FigureSource};
use crate::data::Dataset;
use crate::experiment::estimate::Estimate;
use crate::experiment::paper::document::WordTable;
use crate::experiment::paper::grid::EXAMPLE_BATCH;
use crate::experiment::runner::TrialRecords;
use crate::experiment::setup::Setup;
use crate::experiment::variant::Variant;
use crate::scenario::{Corruption, QualitySpread};

const NODES: usize = 10;

pub(super) fn setups(source: &FigureSource<'_>) -> Vec<Setup> {
    let of = |dataset| Setup {
        nodes: NODES,
        k: 2,
        batch: EXAMPLE_BATCH,
        // 600 images a node, as in the running example.
        spread: QualitySpread::Designated,
        ..source.scope.setup(dataset, Corruption::None, Variant::Concurrent)
    };
    source.present(&[Dataset::Mnist]).into_iter().map(of).collect()
}

pub(super) fn draw(source: &FigureSource<'_>, records: &TrialRecords) -> DrawnFigure {
    let mut figure = DrawnFigure::default();
    for setup in setups(source) {
        let found = source.records(&setup, records);
        // Nodes of different trials have nothing in common: one trial is drawn, all are counted.
        let Some(first) = found.first() else { continue };
        let lines = |paths: &[Vec<Option<f64>>]| -> Vec<_> {
            (paths.iter().enumerate())
                .map(|(node, path)| mean_line(&format!("node {}", node + 1), node, [path]))
                .collect()
        };
        for (name, paths) in [("ψ", &first.details.standings), ("loss", &first.details.losses)] {
            let id = format!("concurrent-{}", if name == "ψ" { "standings" } else { "losses" });
            figure.drawings.push((name.into(), drawn(&id, name, ("round", name), &lines(paths), &[])));
        }
        let spread = |round: usize| {
            let of = |paths: &[Vec<Option<f64>>]| {
                let values: Vec<f64> = paths
                    .iter()
                    .filter_map(|path| path.get(round.min(path.len().checked_sub(1)?)).copied()?)
                    .collect();
                let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                (!values.is_empty()).then_some(most - least)
            };
            Estimate::of(found.iter().map(|record| of(&record.details.standings)))
        };
        let row = |round: usize| {
            let shown = spread(round - 1).map_or("–".into(), |spread| spread.text(4, found.len()));
            vec![round.to_string(), shown]
        };
        figure.tables.push(WordTable {
            title: "highest less lowest standing of ten equal nodes, measured while drawing".into(),
            heads: ["round", "difference"].map(str::to_owned).to_vec(),
            rows: [10, 30, 60, 100, 130].map(row).to_vec(),
            notes: Vec::new(),
        });
    }
    figure
}
