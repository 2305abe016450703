//! Tables of formulas: how much is sent, and how long the fairness mechanism takes.

use super::document::WordTable;
use super::grid::PaperScope;
use super::published_cells::published;
use crate::data::Dataset;
use crate::experiment::estimate::Estimate;
use crate::experiment::labels::dataset_label;
use crate::experiment::measure::Measure;
use crate::experiment::runner::TrialRecords;
use crate::experiment::setup::Setup;
use crate::experiment::table::seeds;
use crate::experiment::variant::Variant;
use crate::scenario::Corruption;

const VARIANTS: [Variant; 5] = [Variant::Fedavg, Variant::QFfl, Variant::Fgfl, Variant::Gog, Variant::Paper];

/// The setups behind the table of communications.
pub(super) fn setups(scope: &PaperScope, datasets: &[Dataset]) -> Vec<Setup> {
    let of =
        |dataset: &Dataset| VARIANTS.map(|variant| scope.setup(*dataset, Corruption::LabelNoise, variant));
    datasets.iter().flat_map(of).collect()
}

/// Models that were sent, beside what the formulas say for the measured T_α.
pub(super) fn communications(
    scope: &PaperScope,
    datasets: &[Dataset],
    trials: u64,
    records: &TrialRecords,
) -> Vec<WordTable> {
    datasets.iter().map(|dataset| of_dataset(scope, *dataset, trials, records)).collect()
}

fn of_dataset(scope: &PaperScope, dataset: Dataset, trials: u64, records: &TrialRecords) -> WordTable {
    let row = |setup: Setup| {
        let over = |measure: Measure| {
            let found = seeds(&setup, trials).filter_map(|setup| records.get(&setup));
            Estimate::of(found.map(|record| measure.of(record)))
        };
        let (rounds, nodes, drawn) = (f64::from(setup.rounds), setup.nodes as f64, setup.k as f64);
        let (name, by_formula) = match setup.variant {
            Variant::Fgfl => ("TN", Some(rounds * nodes)),
            Variant::Paper => {
                let explored = over(Measure::TAlpha).map(|t_alpha| t_alpha.mean);
                ("T₁N + rT₂N", explored.map(|first| first * nodes + drawn * (rounds - first)))
            }
            _ => ("rTN", Some(rounds * drawn)),
        };
        let shown = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.0}"));
        let measured = over(Measure::Communications).map(|count| count.mean);
        vec![setup.variant.label().to_owned(), name.to_owned(), shown(by_formula), shown(measured)]
    };
    let ours = VARIANTS.map(|variant| row(scope.setup(dataset, Corruption::LabelNoise, variant)));
    WordTable {
        title: format!("communications, {}, label noise", dataset_label(dataset)),
        heads: ["strategy", "formula", "formula with the measured T₁", "measured"]
            .map(str::to_owned)
            .to_vec(),
        rows: ours.to_vec(),
        notes: vec![
            "Each has 2n_g numbers, 2n_g + 1 with q-FFL. Draws with replacement ask fewer than k nodes."
                .into(),
        ],
    }
}

/// The published formulas beside ours.
pub(super) fn formulas(label: &str) -> WordTable {
    let rows = published().table(label).map_or(&[][..], |table| table.text_rows.as_slice());
    let plain = |cell: &String| cell.replace(['$', '\\'], "").replace("text", "").replace(['{', '}'], "");
    let mut rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(plain).collect()).collect();
    let heads = if rows.is_empty() { Vec::new() } else { rows.remove(0) };
    WordTable {
        title: format!("{}, as published", label.rsplit(':').next().unwrap_or(label)),
        heads,
        rows,
        notes: Vec::new(),
    }
}
