//! p-values, and the loss of the nodes of the highest, the lower quarter's and the lowest standing.

use super::lines::{drawn, mean_line};
use super::{DrawnFigure, FigureSource, p_values};
use crate::data::Dataset;
use crate::experiment::estimate::Estimate;
use crate::experiment::paper::document::WordTable;
use crate::experiment::runner::TrialRecords;
use crate::experiment::setup::Setup;
use crate::experiment::variant::Variant;
use crate::scenario::Corruption;

/// β of the figure.
const BETA: f64 = 0.01;
const NAMES: [&str; 3] = ["highest", "25 %", "lowest"];

fn examples(source: &FigureSource<'_>) -> Vec<Setup> {
    let of = |dataset| source.scope.running_example(dataset, Corruption::LabelNoise);
    source.present(&[Dataset::Mnist]).into_iter().map(of).collect()
}

fn trained(source: &FigureSource<'_>) -> Vec<Setup> {
    let of = |dataset| Setup {
        temperature: BETA,
        ..source.scope.setup(dataset, Corruption::LabelNoise, Variant::Paper)
    };
    source.present(&[Dataset::Mnist]).into_iter().map(of).collect()
}

pub(super) fn setups(source: &FigureSource<'_>) -> Vec<Setup> {
    examples(source).into_iter().chain(trained(source)).collect()
}

pub(super) fn draw(source: &FigureSource<'_>, records: &TrialRecords) -> DrawnFigure {
    let mut figure = p_values::panels(source, records, &examples(source));
    for setup in trained(source) {
        let found = source.records(&setup, records);
        let line = |rank: usize| {
            mean_line(
                NAMES[rank],
                [0, 7, 6][rank],
                found.iter().map(|record| &record.details.ranked_losses[rank]),
            )
        };
        let name = "loss by standing, β = 0.01";
        figure
            .drawings
            .push((name.into(), drawn("ranked", name, ("round", "loss"), &[0, 1, 2].map(line), &[])));
        let mean = |rank: usize| {
            let of = |losses: &Vec<Option<f64>>| {
                let known: Vec<f64> = losses.iter().flatten().copied().collect();
                (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
            };
            let estimate = Estimate::of(found.iter().map(|record| of(&record.details.ranked_losses[rank])));
            vec![NAMES[rank].to_owned(), estimate.map_or("–".into(), |mean| mean.text(4, found.len()))]
        };
        figure.tables.push(WordTable {
            title: "mean loss by standing, MNIST, label noise, β = 0.01".into(),
            heads: ["standing", "mean loss over rounds"].map(str::to_owned).to_vec(),
            rows: [0, 1, 2].map(mean).to_vec(),
            notes: Vec::new(),
        });
    }
    figure
}
