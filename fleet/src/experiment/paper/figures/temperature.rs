//! β and the expected staleness Γ of ten nodes with ψᵢ ∝ i.

use evenhand_fairness::{expected_staleness, sampling_probabilities};

use super::lines::{LinePoint, PlottedLine, drawn};
use super::{DrawnFigure, FigureSource};
use crate::experiment::paper::document::WordTable;
use crate::experiment::runner::TrialRecords;

const NODES: usize = 10;
const K: u32 = 4;
/// 1/β, from equality to strictness.
const SHARPNESSES: [f64; 9] = [0.001, 0.1, 1.0, 3.0, 10.0, 30.0, 50.0, 70.0, 100.0];

pub(super) fn draw(_: &FigureSource<'_>, _: &TrialRecords) -> DrawnFigure {
    let sum = (NODES * (NODES + 1) / 2) as f64;
    let standings: Vec<f64> = (1..=NODES).map(|i| i as f64 / sum).collect();
    let staleness = |sharpness: f64| -> Vec<f64> {
        let drawn = sampling_probabilities(&standings, 1.0 / sharpness);
        drawn.into_iter().map(|probability| expected_staleness(probability, K)).collect()
    };
    let by_sharpness: Vec<Vec<f64>> = SHARPNESSES.map(staleness).to_vec();
    let line = |node: usize| PlottedLine {
        name: format!("node {}", node + 1),
        colour: [6, 7, 0][node * 2 / (NODES - 1)],
        points: (SHARPNESSES.iter().zip(&by_sharpness))
            .map(|(sharpness, each)| LinePoint { x: *sharpness, y: each[node].log10(), half: 0.0 })
            .collect(),
    };
    let rows = SHARPNESSES.iter().zip(&by_sharpness).map(|(sharpness, each)| {
        let numbers = [each[0], each[NODES / 2 - 1], each[NODES - 1]];
        let cells = numbers.map(|staleness| format!("{staleness:.2}"));
        std::iter::once(format!("1/{sharpness}")).chain(cells).collect()
    });
    let name = "Γ by β";
    DrawnFigure {
        drawings: vec![(
            name.into(),
            drawn("gamma", name, ("1/β", "log₁₀ Γ"), &[line(0), line(4), line(9)], &[]),
        )],
        tables: vec![WordTable {
            title: "expected staleness Γ, N = 10, k = 4, ψᵢ ∝ i".into(),
            heads: ["β", "node 1", "node 5", "node 10"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
            notes: Vec::new(),
        }],
    }
}
