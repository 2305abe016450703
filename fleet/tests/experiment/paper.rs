//! The paper's tables and figures from invented trials.

use evenhand_fleet::data::{AsPublished, Dataset};
use evenhand_fleet::experiment::details::TrialDetails;
use evenhand_fleet::experiment::paper::agreement::Verdict;
use evenhand_fleet::experiment::paper::report;
use evenhand_fleet::experiment::paper::selection::{PaperSelection, agreement};
use evenhand_fleet::experiment::paper::{ITEMS, ItemKind, PaperScope, item};
use evenhand_fleet::experiment::record::TrialResult;
use evenhand_fleet::experiment::runner::RunTrial;
use evenhand_fleet::scenario::NaiveScores;

use super::synthetic_trials::{invented, run_in};

fn selection(name: Option<&str>) -> PaperSelection {
    let datasets = [Dataset::Mnist, Dataset::Cifar10, Dataset::Hft, Dataset::Electricity, Dataset::Pathmnist];
    PaperSelection {
        items: name.map_or(ITEMS.iter().collect(), |name| vec![item(name).unwrap()]),
        datasets: datasets.to_vec(),
        corruptions: Vec::new(),
        variants: Vec::new(),
        scope: PaperScope { as_published: AsPublished::Paper, evaluation_samples: 0, seed: 1 },
        trials: 2,
        controls: true,
    }
}

const RUN: &RunTrial<'_> = &|setup, _, _, _| {
    let path = |start: f64| (0..setup.rounds).map(|round| Some(start / f64::from(round + 1))).collect();
    let details = TrialDetails {
        final_scores: (0..setup.nodes).map(|node| Some(0.5 + 0.001 * node as f64)).collect(),
        recall: path(0.9),
        p_tested: path(0.7),
        ranked_losses: [path(2.0), path(2.1), path(2.2)],
        losses: (0..setup.nodes.min(10)).map(|node| path(2.0 + node as f64)).collect(),
        standings: (0..setup.nodes.min(10)).map(|node| path(0.1 + node as f64)).collect(),
        autocorrelation: vec![1.0, 0.2, -0.1],
        autocorrelation_bound: Some(0.15),
        watched: Some(0),
        naive: NaiveScores { majority: Some(0.11), ..NaiveScores::default() },
        ..TrialDetails::default()
    };
    Ok(TrialResult { details, ..invented(setup) })
};

#[test]
fn every_table_and_figure_can_be_run_and_shown() {
    let out = tempfile::tempdir().unwrap();
    let all = selection(None);
    let setups = all.setups();
    let records = run_in(out.path(), &setups, 2, RUN).unwrap();
    assert!(records.is_complete() && records.done() < setups.len(), "tables share trials");
    let shown = all.shown(&records);
    assert_eq!(shown.len(), 43);
    for one in &shown {
        let is_possible = one.item.unavailable.is_none();
        assert_eq!(one.is_run(), is_possible && one.item.kind != ItemKind::Formulas, "{}", one.item.label);
        for table in &one.tables {
            let markdown = table.markdown();
            assert!(!markdown.contains("NaN") && !markdown.contains("inf"), "{markdown}");
            assert!(table.rows.iter().all(|row| row.len() == table.heads.len()), "{}", table.title);
        }
        for (caption, drawing) in &one.figure.drawings {
            let document = roxmltree::Document::parse(drawing).unwrap();
            assert!(document.descendants().count() > 10 && !drawing.contains("NaN"), "{caption}");
        }
    }
    let counts = agreement(&shown);
    let last = counts[0].rows.last().unwrap();
    assert_eq!(last[..2], ["all", "1269"]);
    let sum: usize = last[2..].iter().map(|count| count.parse::<usize>().unwrap()).sum();
    assert_eq!((sum, last[8].as_str()), (1269, "42"), "every number has one verdict");
    let page = report::html("the paper", "2 trials", &shown, &counts);
    assert!(roxmltree::Document::parse(page.strip_prefix("<!doctype html>\n").unwrap()).is_ok());
}

#[test]
fn beside_rho_stand_its_control_and_that_of_staleness() {
    let out = tempfile::tempdir().unwrap();
    let one = selection(Some("pearson-online-loss"));
    let records = run_in(out.path(), &one.setups(), 2, RUN).unwrap();
    let shown = one.shown(&records);
    let table = &shown[0].tables[0];
    let row = |name: &str| table.rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{table:?}"));
    assert!(row("Ours")[1].contains("[0.678 ± "), "{:?}", row("Ours"));
    assert_eq!(row("Ours, level 0")[1], row("Ours, ρ(staleness)")[1], "both are invented alike");
    assert_eq!(row("ahead as published")[1], "Ours");
    let scores = selection(Some("average-online-acc"));
    let records = run_in(out.path(), &scores.setups(), 2, RUN).unwrap();
    let naive = scores.shown(&records)[0].tables[0].rows.iter().find(|row| row[0] == "without a model").cloned();
    assert!(naive.is_some_and(|row| row[1].starts_with("0.110")));
}

#[test]
fn numbers_without_trials_are_not_run() {
    let out = tempfile::tempdir().unwrap();
    let mut one = selection(Some("pearson-staleness"));
    one.datasets = vec![Dataset::Mnist];
    let records = run_in(out.path(), &one.setups(), 2, RUN).unwrap();
    let shown = one.shown(&records);
    let run = shown[0].results.iter().filter(|result| result.verdict != Verdict::NotRun).count();
    assert_eq!((run, shown[0].results.len()), (16, 80), "one data set of five");
}
