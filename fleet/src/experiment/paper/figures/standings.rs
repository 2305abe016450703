//! Standings at T_α of all nodes, in the order of ζ.

use super::lines::{drawn, mean_line};
use super::{DrawnFigure, FigureSource};
use crate::data::Dataset;
use crate::experiment::estimate::Estimate;
use crate::experiment::labels::{corruption_label, dataset_label};
use crate::experiment::measure::Measure;
use crate::experiment::paper::document::WordTable;
use crate::experiment::runner::TrialRecords;
use crate::experiment::setup::Setup;
use crate::experiment::variant::Variant;
use crate::scenario::Corruption;

const DATASETS: [Dataset; 5] =
    [Dataset::Mnist, Dataset::Cifar10, Dataset::Hft, Dataset::Electricity, Dataset::Pathmnist];
const KINDS: [Corruption; 2] = [Corruption::FeatureNoise, Corruption::LabelNoise];

pub(super) fn setups(source: &FigureSource<'_>) -> Vec<Setup> {
    let of = |dataset| KINDS.map(|kind| source.scope.setup(dataset, kind, Variant::Paper));
    source.present(&DATASETS).into_iter().flat_map(of).collect()
}

pub(super) fn draw(source: &FigureSource<'_>, records: &TrialRecords) -> DrawnFigure {
    let mut figure = DrawnFigure::default();
    let mut table = WordTable {
        title: "standings against ζ".into(),
        heads: ["data", "ρ(−ζ, ψ)", "lowest ψ", "nodes below 0"].map(str::to_owned).to_vec(),
        ..WordTable::default()
    };
    for setup in setups(source) {
        let found = source.records(&setup, records);
        if found.is_empty() {
            continue;
        }
        let name = format!("{}, {}", dataset_label(setup.dataset), corruption_label(setup.corruption));
        let standings: Vec<Vec<Option<f64>>> = (found.iter())
            .map(|record| record.figures.nodes.iter().map(|node| Some(node.standing)).collect())
            .collect();
        let id = format!("psi-{}-{}", setup.dataset.name(), setup.corruption.name());
        let line = mean_line("ψ", 0, &standings);
        figure.drawings.push((name.clone(), drawn(&id, &name, ("node, by ζ", "ψ"), &[line], &[])));
        let rho = Estimate::of(found.iter().map(|record| Measure::RhoStanding.of(record)));
        let all = || standings.iter().flatten().flatten().copied();
        let below = all().filter(|standing| *standing < 0.0).count() as f64 / all().count().max(1) as f64;
        table.rows.push(vec![
            name,
            rho.map_or("–".into(), |rho| rho.text(3, found.len())),
            format!("{:.4}", all().fold(f64::INFINITY, f64::min)),
            format!("{:.0} %", 100.0 * below),
        ]);
    }
    figure.tables.push(table);
    figure
}
