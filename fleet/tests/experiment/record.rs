//! Records on disk: stored, read and refused.

use std::fs;
use std::path::Path;

use evenhand_fairness::measures::Summary;
use evenhand_fleet::experiment::ExperimentError;
use evenhand_fleet::experiment::comparison::table_plan;
use evenhand_fleet::experiment::page;
use evenhand_fleet::experiment::record::{RecordError, TrialRecord};
use evenhand_fleet::experiment::runner::RunTrial;
use evenhand_fleet::experiment::setup::Setup;
use evenhand_fleet::experiment::stored_file::StoredFileError;
use evenhand_fleet::experiment::variant::Variant;
use evenhand_program::exit::Exit;

use super::synthetic_trials::{TRIALS, invented, no_data, run_in, setup, trials};

/// The record of a trial on disk, changed by hand.
fn edited(out: &Path, setup: &Setup, edit: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>)) {
    TrialRecord::new(setup.clone(), invented(setup), 1.0, &no_data(setup).unwrap()).save(out).unwrap();
    let path = out.join(setup.path());
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(json.as_object_mut().unwrap());
    fs::write(&path, json.to_string()).unwrap();
}

#[test]
fn results_of_another_format_are_refused_with_a_remedy() {
    let out = tempfile::tempdir().unwrap();
    let wanted = setup(Variant::Paper);
    edited(out.path(), &wanted, |record| {
        record.insert("format".into(), 8.into());
        record.insert("what only they know".into(), 1.into());
    });
    let error = TrialRecord::load(out.path(), &wanted).unwrap_err();
    assert!(matches!(error, RecordError::Stored(StoredFileError::OtherFormat { found: 8, .. })), "{error}");
    let sentence = error.to_string();
    assert!(sentence.contains("format 8, not 7") && sentence.contains("another --out DIR"), "{sentence}");
    assert_eq!(ExperimentError::from(error).exit(), Exit::Usage);
    // The first ones did not say it.
    edited(out.path(), &wanted, |record| {
        record.remove("format").unwrap();
    });
    let error = TrialRecord::load(out.path(), &wanted).unwrap_err();
    assert!(matches!(error, RecordError::Stored(StoredFileError::OtherFormat { found: 1, .. })), "{error}");
}

#[test]
fn unknown_fields_are_refused() {
    let out = tempfile::tempdir().unwrap();
    let wanted = setup(Variant::Paper);
    edited(out.path(), &wanted, |record| {
        record.insert("colour".into(), 1.into());
    });
    let error = TrialRecord::load(out.path(), &wanted).unwrap_err();
    assert!(
        matches!(error, RecordError::Stored(StoredFileError::Malformed { .. }))
            && error.to_string().contains("colour"),
        "{error}"
    );
    edited(out.path(), &wanted, |record| record["setup"]["colour"] = 1.into());
    assert!(TrialRecord::load(out.path(), &wanted).is_err());
}

#[test]
fn results_of_other_settings_are_refused_with_a_remedy() {
    let out = tempfile::tempdir().unwrap();
    let wanted = setup(Variant::Paper);
    let path = out.path().join(wanted.path());
    let other = Setup { learning_rate: 0.5, ..wanted.clone() };
    TrialRecord::new(other.clone(), invented(&other), 1.0, &no_data(&other).unwrap())
        .save(out.path())
        .unwrap();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::rename(out.path().join(other.path()), &path).unwrap();
    let error = run_in(out.path(), &[wanted], 1, &|_, _, _, _| panic!("must not be run")).unwrap_err();
    assert!(matches!(error, ExperimentError::Record(RecordError::OtherSetup { .. })), "{error}");
    let sentence = error.to_string();
    assert!(sentence.contains(&path.display().to_string()), "{sentence}");
    assert!(sentence.contains("learning-rate 0.5, not 0.002"), "{sentence}");
    assert!(sentence.contains("another --out DIR"), "{sentence}");
}

#[test]
fn results_of_other_files_are_not_mixed() {
    let out = tempfile::tempdir().unwrap();
    let wanted = trials(&[setup(Variant::Paper)]);
    edited(out.path(), &wanted[0], |record| {
        assert_eq!(record.insert("recorded".into(), 60_000.into()), Some(0.into()));
    });
    let error = run_in(out.path(), &wanted, 1, &|setup, _, _, _| Ok(invented(setup))).unwrap_err();
    let sentence = error.to_string();
    assert!(sentence.contains("is of 0 samples, other trials of mnist are of 60000"), "{sentence}");
    assert!(!out.path().join(wanted[1].path()).exists(), "what does not belong there is not stored");
    edited(out.path(), &wanted[0], |record| drop(record.remove("recorded")));
    run_in(out.path(), &wanted, 1, &|setup, _, _, _| Ok(invented(setup))).unwrap();
}

#[test]
fn a_file_that_is_no_result_is_refused_with_a_remedy() {
    let out = tempfile::tempdir().unwrap();
    let wanted = setup(Variant::Paper);
    let path = out.path().join(wanted.path());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "{\"setup\": 1").unwrap();
    let error = run_in(out.path(), &[wanted], 1, &|_, _, _, _| panic!("must not be run")).unwrap_err();
    let sentence = error.to_string();
    assert!(sentence.contains("is no result of a trial") && sentence.contains("--out DIR"), "{sentence}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"setup\": 1", "what is not ours stays as it is");
}

#[test]
fn results_that_cannot_be_stored_are_no_usage_error() {
    let out = tempfile::tempdir().unwrap();
    let error = run_in(out.path(), &[setup(Variant::Gog)], 1, &|setup, _, _, _| {
        fs::write(out.path().join("mnist"), "a file where a folder should be").unwrap();
        Ok(invented(setup))
    })
    .unwrap_err();
    assert!(
        matches!(error, ExperimentError::Record(RecordError::Stored(StoredFileError::Unwritable { .. }))),
        "{error}"
    );
    assert_eq!(error.exit(), Exit::Software);
}

#[test]
fn a_diverged_trial_is_stored_without_values_that_are_no_numbers() {
    let out = tempfile::tempdir().unwrap();
    let setups = [setup(Variant::QFfl)];
    let diverged: &RunTrial<'_> = &|setup, _, _, _| {
        let mut seen = invented(setup);
        seen.figures.rho_loss = Some(f64::NAN);
        seen.figures.online_accuracy =
            seen.figures.online_accuracy.map(|s| Summary { mean: f64::INFINITY, ..s });
        seen.figures.nodes[3].online_loss = f64::NAN;
        seen.curve.scores[5] = None;
        Ok(seen)
    };
    run_in(out.path(), &trials(&setups), 1, diverged).unwrap();
    let again = run_in(out.path(), &trials(&setups), 1, &|_, _, _, _| panic!("must not be run")).unwrap();
    let text = table_plan(&setups).fill(&again, TRIALS).text();
    assert!(text.contains('–') && !text.contains("NaN") && !text.contains("inf"), "{text}");
    assert!(!page::experiment(&setups, TRIALS, &again).contains("NaN"));
}
