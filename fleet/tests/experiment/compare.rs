//! Comparisons and their trials.

use std::sync::atomic::{AtomicUsize, Ordering};

use evenhand_fleet::data::AsPublished;
use evenhand_fleet::data::Dataset;
use evenhand_fleet::experiment::compare::{self, ComparisonTable, TableScope};
use evenhand_fleet::experiment::page;
use evenhand_fleet::experiment::runner::{RunTrial, TrialRecords};
use evenhand_fleet::experiment::setup::Setup;
use evenhand_fleet::experiment::variant::Variant;
use evenhand_fleet::scenario::Corruption;

use super::synthetic_trials::{TRIALS, finished, invented, run_in};

fn scope() -> TableScope {
    let (variants, corruptions) = (Variant::all(), compare::CORRUPTIONS.to_vec());
    TableScope { variants, corruptions, as_published: AsPublished::Paper, evaluation_samples: 0, seed: 1 }
}

#[test]
fn comparisons_share_trials_with_experiments_and_among_its_tables() {
    let scope = scope();
    let out = tempfile::tempdir().unwrap();
    finished(out.path(), 2);
    let plans = compare::plans(ComparisonTable::Fairness, Dataset::Mnist, &scope);
    let fairness: Vec<Setup> = plans.iter().flat_map(|plan| plan.setups(TRIALS)).collect();
    let ran = AtomicUsize::new(0);
    let run: &RunTrial<'_> = &|setup, _, _, _| {
        ran.fetch_add(1, Ordering::Relaxed);
        Ok(invented(setup))
    };
    let records = run_in(out.path(), &fairness, 2, run).unwrap();
    assert_eq!(
        ran.load(Ordering::Relaxed),
        3 * 11 * 3,
        "three corruptions more, eleven strategies, three trials"
    );
    let tables: Vec<_> = plans.iter().map(|plan| plan.fill(&records, TRIALS)).collect();
    let row = &tables[0].rows[1];
    assert_eq!(
        (row.cells.len(), row.cells[0].published, row.cells[2].published),
        (4, Some("0.647(0.018)"), Some("0.785(0.005)"))
    );
    let performance = compare::plans(ComparisonTable::Performance, Dataset::Mnist, &scope);
    let setups: Vec<Setup> = performance.iter().flat_map(|plan| plan.setups(TRIALS)).collect();
    run_in(out.path(), &setups, 2, run).unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 99, "performance is read off the trials of fairness");
}

#[test]
fn tables_ask_no_data_set_for_what_it_cannot_have() {
    let corruptions = vec![Corruption::Heterogeneity, Corruption::LabelNoise];
    let scope = TableScope { corruptions, ..scope() };
    let heads = |dataset| compare::plans(ComparisonTable::Fairness, dataset, &scope)[0].heads.clone();
    assert_eq!(heads(Dataset::Mnist), ["strategy", "heterogeneity", "label noise"]);
    assert_eq!(heads(Dataset::Electricity), ["strategy", "label noise"]);
}

#[test]
fn every_comparison_can_be_filled_and_written() {
    let scope = scope();
    let out = tempfile::tempdir().unwrap();
    for dataset in [Dataset::Mnist, Dataset::Electricity, Dataset::Synthetic] {
        for name in ComparisonTable::All.each() {
            let plans = compare::plans(name, dataset, &scope);
            let classes = dataset != Dataset::Electricity;
            assert_eq!(plans.is_empty(), name == ComparisonTable::ClassLadder && !classes);
            let setups: Vec<Setup> = plans.iter().flat_map(|plan| plan.setups(1)).collect();
            let records = run_in(out.path(), &setups, 2, &|setup, _, _, _| Ok(invented(setup))).unwrap();
            for table in plans.iter().map(|plan| plan.fill(&records, 1)) {
                let markdown = table.markdown();
                assert!(table.rows.iter().all(|row| row.cells.len() + 1 == table.columns.len()));
                assert!(!markdown.contains("NaN") && markdown.lines().count() > table.rows.len());
            }
        }
    }
    let beta = &compare::plans(ComparisonTable::Sharpness, Dataset::Mnist, &scope)[0];
    let stored = TrialRecords::stored(out.path(), &beta.setups(1).collect::<Vec<_>>()).unwrap();
    let page = page::tables("β", &[beta.fill(&stored, 1)], &[], 1, &stored);
    let document = roxmltree::Document::parse(page.strip_prefix("<!doctype html>\n").unwrap()).unwrap();
    let dots = document.descendants().filter(|node| node.has_tag_name("circle")).count();
    assert_eq!((dots, page.contains("NaN")), (5, false), "one dot a β");
    let names: Vec<&str> = beta.rows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["1/30", "1/75", "1/150", "1/300", "1/1500"]);
    assert!(beta.rows[2].1[0].setup.differences().is_empty(), "β as published is a trial of `experiment`");
}
