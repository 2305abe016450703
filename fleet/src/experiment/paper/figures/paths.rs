//! The loss of each of five nodes over rounds, ours beside FGFL.

use super::lines::{drawn, mean_line};
use super::{DrawnFigure, FigureSource};
use crate::data::Dataset;
use crate::experiment::estimate::Estimate;
use crate::experiment::paper::document::WordTable;
use crate::experiment::record::TrialRecord;
use crate::experiment::runner::TrialRecords;
use crate::experiment::setup::Setup;
use crate::experiment::variant::Variant;
use crate::scenario::Corruption;

const NODES: usize = 5;

fn setup(source: &FigureSource<'_>, dataset: Dataset, variant: Variant) -> Setup {
    Setup {
        nodes: NODES,
        k: 2,
        tested_nodes: NODES,
        window: 10,
        alpha: 0.5,
        ..source.scope.setup(dataset, Corruption::LabelNoise, variant)
    }
}

const VARIANTS: [Variant; 2] = [Variant::Paper, Variant::Fgfl];

pub(super) fn setups(source: &FigureSource<'_>) -> Vec<Setup> {
    let datasets = source.present(&[Dataset::Mnist]);
    datasets.into_iter().flat_map(|dataset| VARIANTS.map(|variant| setup(source, dataset, variant))).collect()
}

pub(super) fn draw(source: &FigureSource<'_>, records: &TrialRecords) -> DrawnFigure {
    let mut figure = DrawnFigure::default();
    let heads = ["", "node 1", "node 2", "node 3", "node 4", "node 5", "latest"];
    let mut table = WordTable {
        title: "loss after the last round, five nodes, label noise".into(),
        heads: heads.map(str::to_owned).to_vec(),
        ..WordTable::default()
    };
    for setup in setups(source) {
        let found = source.records(&setup, records);
        let label = setup.variant.label();
        let of_node = |node: usize| found.iter().filter_map(move |record| record.details.losses.get(node));
        let mut lines: Vec<_> =
            (0..NODES).map(|node| mean_line(&format!("node {}", node + 1), node, of_node(node))).collect();
        lines.push(mean_line("latest", 10, found.iter().map(|record| &record.details.latest_losses)));
        let id = format!("paths-{}", setup.variant.name());
        figure.drawings.push((label.into(), drawn(&id, label, ("round", "loss"), &lines, &[])));
        let last = |of: &dyn Fn(&TrialRecord) -> Option<f64>| {
            let estimate = Estimate::of(found.iter().map(|record| of(record)));
            estimate.map_or("–".into(), |estimate| estimate.text(3, found.len()))
        };
        let mut row = vec![label.to_owned()];
        for node in 0..NODES {
            row.push(last(&|record| record.details.losses.get(node)?.last().copied().flatten()));
        }
        row.push(last(&|record| record.details.latest_losses.last().copied().flatten()));
        table.rows.push(row);
    }
    figure.tables.push(table);
    figure
}
