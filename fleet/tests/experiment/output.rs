//! Figures over trials, as text, Markdown, JSON and a page.

use evenhand_fleet::experiment::comparison::table_plan;
use evenhand_fleet::experiment::page;
use evenhand_fleet::experiment::record::TrialResult;
use evenhand_fleet::experiment::runner::{RunTrial, TrialRecords};
use evenhand_fleet::experiment::summary::ExperimentFigures;
use evenhand_fleet::experiment::variant::Variant;

use super::synthetic_trials::{TRIALS, all, finished, invented, run_in, setup, trials};

#[test]
fn means_and_standard_errors_are_over_the_trials_that_have_the_value() {
    let out = tempfile::tempdir().unwrap();
    let setups = [setup(Variant::Paper)];
    let records = run_in(out.path(), &trials(&setups), 2, &|setup, _, _, _| {
        let mut seen = invented(setup);
        seen.figures.rho_loss = [None, Some(0.5), Some(0.7), Some(0.6)][setup.seed as usize];
        seen.figures.rho_staleness = [None, Some(0.5), None, Some(0.8)][setup.seed as usize];
        Ok(seen)
    });
    let text = table_plan(&setups).fill(&records.unwrap(), TRIALS).text();
    // Values 0.5, 0.7, 0.6: deviation 0.1, over √3. Values 0.5, 0.8: deviation 0.3/√2, over √2.
    assert!(text.contains("0.600 ± 0.058 [0.647(0.018)]"), "{text}");
    assert!(text.contains("0.650 ± 0.150 (2 of 3)"), "{text}");
}

#[test]
fn stored_trials_are_shown_without_running_any() {
    let out = tempfile::tempdir().unwrap();
    let wanted = trials(&all());
    run_in(out.path(), &wanted[..4], 1, &|setup, _, _, _| Ok(invented(setup))).unwrap();
    let stored = TrialRecords::stored(out.path(), &wanted).unwrap();
    assert_eq!((stored.done(), stored.wanted), (4, 33));
    let table = table_plan(&all()).fill(&stored, TRIALS).without_empty_rows();
    let names: Vec<&str> = table.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["Evenhand", "paper"]);
    assert!(table.rows[1].cells[0].text().ends_with("(1 of 3)"), "{}", table.rows[1].cells[0].text());
}

#[test]
fn repeated_samples_are_noted_beside_the_figures() {
    let out = tempfile::tempdir().unwrap();
    let setups = [setup(Variant::Paper)];
    let run: &RunTrial<'_> =
        &|setup, _, _, _| Ok(TrialResult { passes: setup.seed as usize, ..invented(setup) });
    let records = run_in(out.path(), &trials(&setups), 1, run).unwrap();
    let said = "Samples are seen up to 3 times";
    assert_eq!(table_plan(&setups).fill(&records, TRIALS).text().matches(said).count(), 1);
    assert!(!table_plan(&setups).fill(&records, 1).text().contains("Samples are seen"), "seed 1 has enough");
    let figures = ExperimentFigures::of(&setups, TRIALS, &records).unwrap();
    assert!(figures.notes.iter().any(|note| note.starts_with(said)), "{:?}", figures.notes);
}

#[test]
fn the_json_object_has_the_promised_shape() {
    let out = tempfile::tempdir().unwrap();
    let records = finished(out.path(), 2);
    let figures = ExperimentFigures::of(&all(), TRIALS, &records).unwrap();
    let json = serde_json::to_value(&figures).unwrap();
    assert_eq!(json["settings"]["dataset"], "mnist");
    let strategies = json["strategies"].as_array().unwrap();
    assert_eq!(strategies.len(), 11);
    let (first, fedavg) = (&strategies[0], &strategies[5]);
    assert_eq!((&first["name"], &first["trials"]), (&"evenhand".into(), &3.into()));
    assert_eq!(first["rho_loss"]["values"].as_array().unwrap().len(), 3);
    for number in ["mean", "standard_error"] {
        assert!(first["rho_loss"][number].is_f64() && first["online_accuracy"]["min"][number].is_f64());
    }
    assert_eq!(first["t_alpha"]["mean"], 42.0);
    assert!(fedavg["rho_standing"].is_null(), "it measures no contributions");
    assert_eq!((fedavg["name"].as_str(), fedavg["rho_loss"].is_null()), (Some("fedavg"), true));
}

#[test]
fn standings_are_compared_with_the_quality_of_data() {
    let out = tempfile::tempdir().unwrap();
    let setups = [setup(Variant::Paper)];
    let records = run_in(out.path(), &trials(&setups), 2, &|setup, _, _, _| {
        let mut seen = invented(setup);
        for node in &mut seen.figures.nodes {
            node.standing = [0.0, -node.zeta, node.zeta, 0.04][setup.seed as usize];
        }
        Ok(seen)
    });
    let figures = ExperimentFigures::of(&setups, TRIALS, &records.unwrap()).unwrap();
    let values = &figures.strategies[0].rho_standing.as_ref().unwrap().values;
    assert_eq!(values.len(), 2, "equal standings follow nothing");
    assert!((values[0] - 1.0).abs() < 1e-12 && (values[1] + 1.0).abs() < 1e-12, "{values:?}");
}

#[test]
fn text_markdown_and_page_name_every_strategy_and_no_nan() {
    let out = tempfile::tempdir().unwrap();
    let records = finished(out.path(), 2);
    let table = table_plan(&all()).fill(&records, TRIALS);
    let page = page::experiment(&all(), TRIALS, &records);
    for shown in [table.text(), table.markdown(), page] {
        for variant in Variant::all() {
            assert!(shown.contains(variant.label()), "{} is missing in\n{shown}", variant.label());
        }
        assert!(shown.contains("0.647") && shown.contains('–') && shown.contains('±'), "{shown}");
        assert!(!shown.contains("NaN"));
    }
}

#[test]
fn the_page_is_well_formed_and_needs_nothing_but_itself() {
    let out = tempfile::tempdir().unwrap();
    let records = finished(out.path(), 2);
    for setups in [all(), all()[..1].to_vec(), all()[4..5].to_vec()] {
        let page = page::experiment(&setups, TRIALS, &records);
        let document = roxmltree::Document::parse(page.strip_prefix("<!doctype html>\n").unwrap()).unwrap();
        let rows = document.descendants().filter(|node| node.has_tag_name("tr")).count();
        assert_eq!(rows, setups.len() + 1, "one row a strategy, and the head");
        let plots = document.descendants().filter(|node| node.has_tag_name("svg")).count();
        assert_eq!(plots, if setups[0].variant.is_ours() { 5 } else { 3 });
        assert!(page.contains("evenhand-fleet experiment --dataset mnist"), "how to repeat it");
        for reference in ["http:", "https:", "//", "src=", "href=", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(reference), "the page contains {reference}");
        }
    }
}
