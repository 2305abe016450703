//! Tables of the paper, in its layout: a row a strategy or setting, a column a data set, a table a kind of bad data.

use super::agreement::{Verdict, VerdictCounts, worse_groups};
use super::document::WordTable;
use super::items::PaperItem;
use super::published_cells::{BetterDirection, PublishedCell};
use super::results::CellResult;
use crate::experiment::estimate::Estimate;

const NOTHING: &str = "–";

/// The tables of an item: ours, the published number, z.
pub fn item_tables(item: &PaperItem, results: &[CellResult], trials: u64) -> Vec<WordTable> {
    let mut corruptions: Vec<Option<&str>> = Vec::new();
    for result in results {
        let corruption = result.cell.corruption.as_deref();
        if !corruptions.contains(&corruption) {
            corruptions.push(corruption);
        }
    }
    corruptions.into_iter().map(|corruption| block(item, results, corruption, trials)).collect()
}

fn block(item: &PaperItem, all: &[CellResult], corruption: Option<&str>, trials: u64) -> WordTable {
    let results: Vec<&CellResult> =
        all.iter().filter(|result| result.cell.corruption.as_deref() == corruption).collect();
    let (mut datasets, mut rows): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for result in &results {
        let (dataset, row) = (result.cell.dataset.as_str(), result.cell.row.as_str());
        if !datasets.contains(&dataset) {
            datasets.push(dataset);
        }
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let find = |row: &str, dataset: &str| {
        results.iter().find(|result| result.cell.row == row && result.cell.dataset == dataset).copied()
    };
    let line = |name: String, cell: &dyn Fn(&str) -> String| -> Vec<String> {
        std::iter::once(name).chain(datasets.iter().map(|dataset| cell(dataset))).collect()
    };
    let mut lines: Vec<Vec<String>> = (rows.iter())
        .map(|row| {
            line((*row).to_owned(), &|dataset| {
                find(row, dataset).map_or(NOTHING.into(), |one| shown(one, trials))
            })
        })
        .collect();
    for (name, beside) in BESIDE {
        for row in rows
            .iter()
            .filter(|row| datasets.iter().any(|set| find(row, set).is_some_and(|one| beside(one).is_some())))
        {
            if name == NAIVE && *row != rows[0] {
                continue;
            }
            let label = if name == NAIVE { name.to_owned() } else { format!("{row}, {name}") };
            lines.push(line(label, &|dataset| {
                find(row, dataset)
                    .and_then(beside)
                    .map_or(NOTHING.into(), |estimate| number_text(&estimate, trials))
            }));
        }
    }
    let ahead = |of: fn(&CellResult) -> Option<f64>| {
        line(String::new(), &|dataset| {
            let of_dataset: Vec<&CellResult> =
                results.iter().copied().filter(|result| result.cell.dataset == dataset).collect();
            best(&of_dataset, of).unwrap_or(NOTHING).to_owned()
        })
    };
    if results.iter().any(|result| result.cell.better != BetterDirection::None) && rows.len() > 1 {
        let named = |name: &str, mut cells: Vec<String>| {
            cells[0] = name.into();
            cells
        };
        lines.push(named("ahead here", ahead(|result| result.ours.as_ref().map(|ours| ours.mean))));
        lines.push(named("ahead as published", ahead(|result| Some(result.cell.value))));
    }
    let kind = corruption.map(|corruption| corruption.replace('-', " "));
    let about =
        kind.filter(|kind| !item.about.contains(kind)).map_or(String::new(), |kind| format!(", {kind}"));
    WordTable {
        title: format!("{}: {}{about}", item.name(), item.about),
        heads: std::iter::once(String::new()).chain(datasets.iter().map(|set| (*set).to_owned())).collect(),
        rows: lines,
        notes: notes(&results),
    }
}

/// Figures that stand beside some results: their name, and where they are found.
type Beside = (&'static str, fn(&CellResult) -> Option<Estimate>);
const NAIVE: &str = "without a model";
const BESIDE: [Beside; 3] = [
    ("ρ(staleness)", |result| result.staleness.clone()),
    ("level 0", |result| result.level_0.clone()),
    (NAIVE, |result| result.naive.clone()),
];

fn notes(results: &[&CellResult]) -> Vec<String> {
    let mut notes = Vec::new();
    for result in results {
        if let Err(why) = &result.plan {
            let note = format!("Not repeated: {why}.");
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    let brackets = results.first().map(|result| result.cell.second_is.as_str()).unwrap_or_default();
    if !brackets.starts_with("standard error") && !brackets.is_empty() {
        notes.push(format!("In parentheses: {brackets}."));
    }
    notes
}

/// `0.553 ± 0.020 [0.647 ± 0.018] −2.1`.
fn shown(result: &CellResult, trials: u64) -> String {
    let ours = match &result.ours {
        Some(ours) => number_text(ours, trials),
        None => match result.verdict {
            Verdict::NotRun | Verdict::Unavailable => "not run".to_owned(),
            _ => NOTHING.to_owned(),
        },
    };
    let second = result.second.as_ref().map_or(String::new(), |second| format!(" ({})", digits(second.mean)));
    let z = result.z.map_or(String::new(), |z| format!(" {z:+.1}"));
    format!("{ours}{second} [{}]{z}", published_text(result.cell))
}

fn published_text(cell: &PublishedCell) -> String {
    match (cell.standard_error(), cell.second) {
        (Some(error), _) => format!("{} ± {}", digits(cell.value), digits(error)),
        (None, Some(second)) => format!("{} ({})", digits(cell.value), digits(second)),
        (None, None) => digits(cell.value),
    }
}

fn number_text(estimate: &Estimate, trials: u64) -> String {
    let error = estimate.standard_error.map_or(String::new(), |error| format!(" ± {}", digits(error)));
    let count = estimate.values.len() as u64;
    let of = if count < trials { format!(" ({count} of {trials})") } else { String::new() };
    format!("{}{error}{of}", digits(estimate.mean))
}

/// Three decimals, or three digits of a small number.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 0.01 || size == 0.0 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

fn best<'a>(results: &[&'a CellResult], of: fn(&CellResult) -> Option<f64>) -> Option<&'a str> {
    let values = results.iter().filter_map(|result| {
        let sign = match result.cell.better {
            BetterDirection::Higher => 1.0,
            BetterDirection::Lower => -1.0,
            BetterDirection::None => return None,
        };
        Some((result.cell.row.as_str(), sign * of(result)?))
    });
    values.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(row, _)| row)
}

/// How many numbers agree, by table; and the worse ones, by table and data set.
pub fn agreement_tables(items: &[(&PaperItem, Vec<CellResult>)]) -> Vec<WordTable> {
    let heads = || Verdict::ALL.iter().map(|verdict| verdict.label().to_owned());
    let row = |name: &str, counts: &VerdictCounts| {
        let cells: usize = counts.0.values().sum();
        let counted = Verdict::ALL.iter().map(|verdict| counts.get(*verdict).to_string());
        [name.to_owned(), cells.to_string()].into_iter().chain(counted).collect::<Vec<_>>()
    };
    let mut rows: Vec<Vec<String>> =
        items.iter().map(|(item, results)| row(item.name(), &VerdictCounts::of(results))).collect();
    let all: Vec<CellResult> = items.iter().flat_map(|(_, results)| results.iter().cloned()).collect();
    rows.push(row("all", &VerdictCounts::of(&all)));
    let counts = WordTable {
        title: "Agreement with the published numbers".into(),
        heads: ["table".to_owned(), "numbers".to_owned()].into_iter().chain(heads()).collect(),
        rows,
        notes: Vec::new(),
    };
    let groups = worse_groups(&all);
    if groups.is_empty() {
        return vec![counts];
    }
    let causes = WordTable {
        title: "Worse numbers, and what differs".into(),
        heads: ["table", "data set", "numbers", "what differs"].map(str::to_owned).to_vec(),
        rows: (groups.into_iter())
            .map(|group| {
                let table = group.table.rsplit(':').next().unwrap_or_default().to_owned();
                vec![table, group.dataset, group.count.to_string(), group.cause.to_owned()]
            })
            .collect(),
        notes: Vec::new(),
    };
    vec![counts, causes]
}
