//! The final accuracy of all nodes under label noise, by strategy.

use evenhand_report::plot::{Anchor, HEIGHT, Scale, Svg, WIDTH, extent};

use super::{DrawnFigure, FigureSource};
use crate::data::Dataset;
use crate::experiment::labels::dataset_label;
use crate::experiment::paper::document::WordTable;
use crate::experiment::runner::TrialRecords;
use crate::experiment::setup::Setup;
use crate::experiment::variant::Variant;
use crate::scenario::Corruption;

const VARIANTS: [Variant; 6] =
    [Variant::Fedavg, Variant::QFfl, Variant::Fgfl, Variant::Gog, Variant::Standalone, Variant::Paper];
const DATASETS: [Dataset; 2] = [Dataset::Mnist, Dataset::Cifar10];
const BINS: usize = 40;
const NAMES: f64 = 90.0;

pub(super) fn setups(source: &FigureSource<'_>) -> Vec<Setup> {
    let of = |dataset| VARIANTS.map(|variant| source.scope.setup(dataset, Corruption::LabelNoise, variant));
    source.present(&DATASETS).into_iter().flat_map(of).collect()
}

pub(super) fn draw(source: &FigureSource<'_>, records: &TrialRecords) -> DrawnFigure {
    let mut figure = DrawnFigure::default();
    for dataset in source.present(&DATASETS) {
        let scores: Vec<(Variant, Vec<f64>)> = (VARIANTS.iter())
            .map(|variant| {
                let setup = source.scope.setup(dataset, Corruption::LabelNoise, *variant);
                let found = source.records(&setup, records);
                let scores = found.iter().flat_map(|record| record.details.final_scores.iter().flatten());
                (*variant, scores.copied().collect())
            })
            .collect();
        let name = format!("final accuracy over nodes, {}, label noise", dataset_label(dataset));
        figure
            .drawings
            .push((name.clone(), histograms(&format!("final-{}", dataset.name()), &name, &scores)));
        let row = |(variant, scores): &(Variant, Vec<f64>)| {
            let cells = match evenhand_fairness::measures::Summary::of(scores) {
                Some(over) => {
                    [over.mean, over.min, over.max, over.std].map(|value| format!("{value:.4}")).to_vec()
                }
                None => vec!["–".to_owned(); 4],
            };
            std::iter::once(variant.label().to_owned()).chain(cells).collect()
        };
        figure.tables.push(WordTable {
            title: name,
            heads: ["strategy", "mean", "lowest", "highest", "deviation"].map(str::to_owned).to_vec(),
            rows: scores.iter().map(row).collect(),
            notes: Vec::new(),
        });
    }
    figure
}

/// One row of bars a strategy: nodes of all trials by score.
fn histograms(id: &str, title: &str, scores: &[(Variant, Vec<f64>)]) -> String {
    let mut svg = Svg::new(id, (WIDTH, HEIGHT), title, "One row a strategy; bars are nodes of all trials.");
    let (left, bottom) = (NAMES, HEIGHT - 42.0);
    let axis =
        Scale::nice(extent(scores.iter().flat_map(|(_, each)| each.iter().copied())), (left, WIDTH - 14.0));
    for tick in axis.ticks() {
        svg.line("grid", (axis.at(tick), 6.0), (axis.at(tick), bottom));
        svg.text("tick", (axis.at(tick), bottom + 18.0), Anchor::Middle, &axis.label(tick));
    }
    let height = (bottom - 6.0) / scores.len().max(1) as f64;
    let bin_width = (WIDTH - 14.0 - left) / BINS as f64;
    for (row, (variant, each)) in scores.iter().enumerate() {
        let floor = 6.0 + height * (row + 1) as f64;
        svg.text("name", (left - 10.0, floor - height / 3.0), Anchor::End, variant.label());
        let mut counts = [0usize; BINS];
        for score in each {
            let bin = ((axis.at(*score) - left) / bin_width) as usize;
            counts[bin.min(BINS - 1)] += 1;
        }
        let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
        for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let tall = 0.85 * height * *count as f64 / most;
            let place = (left + bin_width * bin as f64, floor - tall);
            let class = format!("dot c{}", variant.position());
            svg.rect(&class, place, (bin_width - 1.0, tall), Some(&format!("{count} nodes")));
        }
    }
    svg.text("name", (WIDTH - 14.0, bottom + 36.0), Anchor::End, "accuracy, last ten rounds");
    svg.finish()
}
