//! Many trials, with a trial that takes no time: what is run, kept, refused and shown.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use evenhand_coordinator::fairness::measures::Summary;
use evenhand_coordinator::federation::Cause;
use evenhand_fleet::FleetError;
use evenhand_fleet::corruption::Corruption;
use evenhand_fleet::data::{Answers, Dataset, Pool};
use evenhand_fleet::experiment::command::plan;
use evenhand_fleet::experiment::page;
use evenhand_fleet::experiment::progress::Progress;
use evenhand_fleet::experiment::record::{Curve, Record, RecordError, Seen};
use evenhand_fleet::experiment::runner::{Laboratory, Records, RunTrial};
use evenhand_fleet::experiment::setup::{AsPublished, Contender, Setup};
use evenhand_fleet::experiment::summary::ExperimentFigures;
use evenhand_fleet::outcome::{Ended, Figures, NodeFigures};
use evenhand_fleet::paper::{self, Scope, TableName};
use evenhand_fleet::progress::Style;
use evenhand_fleet::transport::Interrupt;
use evenhand_protocol::exit::Exit;

const TRIALS: u64 = 3;

fn setup(contender: Contender) -> Setup {
    Setup::published(Dataset::Mnist, Corruption::FeatureNoise, contender, AsPublished::Paper, 1)
}

/// One setup a strategy.
fn all() -> Vec<Setup> {
    Contender::all().into_iter().map(setup).collect()
}

/// All trials of all strategies.
fn trials(setups: &[Setup]) -> Vec<Setup> {
    setups.iter().flat_map(|setup| (0..TRIALS).map(|trial| setup.with_seed(setup.seed + trial))).collect()
}

/// What never happened: fairer for ours, with some luck by seed; FedAvg has no correlation at all.
fn made_up(setup: &Setup) -> Seen {
    let luck = (setup.seed * 7919 % 13) as f64 / 13.0;
    let place = setup.contender.position() as f64;
    let rho = (setup.contender != Contender::Fedavg).then_some(0.9 - 0.11 * place + 0.08 * luck);
    let accuracy = 0.62 - 0.012 * place + 0.01 * luck;
    let node = |index: usize| {
        let zeta = 0.9 * index as f64 / (setup.nodes - 1) as f64;
        let wobble = ((index * 7919 + setup.seed as usize * 31) % 17) as f64 / 17.0;
        NodeFigures {
            id: format!("node-{index:02}"),
            zeta,
            standing: 0.05 - 0.03 * zeta,
            sampling_probability: 1.0 / setup.nodes as f64,
            drawn: 40,
            mean_staleness: 1.0 + 2.0 * zeta + wobble,
            longest_staleness: 9,
            online_loss: 1.2 + 0.1 * zeta + 0.05 * wobble,
            ..node_without_scores()
        }
    };
    let score = |round: u32| accuracy * (1.0 - (-f64::from(round) / 25.0).exp());
    Seen {
        figures: Figures {
            rho_loss: rho,
            rho_staleness: rho,
            rho_accuracy: rho.map(|rho| -rho),
            online_loss: Some(Summary { mean: 1.2, min: 1.1, max: 1.4, std: 0.05 }),
            online_loss_std: Some(0.05),
            online_mape: None,
            online_accuracy: Some(Summary {
                mean: accuracy,
                min: accuracy - 0.05,
                max: accuracy + 0.02,
                std: 0.011,
            }),
            t_alpha: setup.contender.is_ours().then_some(40 + setup.seed as u32),
            recall: setup.contender.is_ours().then_some(0.8),
            henze_zirkler: None,
            autocorrelation: None,
            rounds: setup.rounds,
            bytes_up: 1,
            bytes_down: 1,
            seconds_training: 12.0,
            seconds_fairness: 0.5,
            ended: Ended::Complete,
            nodes: (0..setup.nodes).map(node).collect(),
        },
        curve: Curve {
            losses: (1..=setup.rounds).map(|round| Some(2.0 - score(round))).collect(),
            scores: (1..=setup.rounds).map(|round| Some(score(round))).collect(),
        },
        passes: 1,
    }
}

fn node_without_scores() -> NodeFigures {
    serde_json::from_value(serde_json::json!({
        "id": "", "zeta": 0.0, "standing": 0.0, "sampling_probability": 0.0, "drawn": 0, "mean_staleness": 0.0,
        "longest_staleness": 0, "online_loss": 0.0, "online_mape": 0.0, "online_accuracy": 0.6,
    }))
    .unwrap()
}

fn no_data(_: &Setup) -> Result<Pool, FleetError> {
    Ok(Pool {
        shape: vec![1],
        features: Vec::new(),
        answers: Answers::Classes { of: Vec::new(), count: 1 },
        owners: None,
        recorded: 0,
        note: None,
    })
}

fn run_in(out: &Path, setups: &[Setup], jobs: usize, run: &RunTrial<'_>) -> Result<Records, FleetError> {
    let interrupt = Interrupt::default();
    let laboratory = Laboratory { out, jobs, load: &no_data, run, interrupt: &interrupt };
    laboratory.records(setups, Progress::new(std::io::sink(), Style::Plain))
}

fn finished(out: &Path, jobs: usize) -> Records {
    run_in(out, &trials(&all()), jobs, &|setup, _, _, _| Ok(made_up(setup))).unwrap()
}

/// All files below a folder, relative to it.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    found
}

#[test]
fn means_and_standard_errors_are_over_the_trials_that_have_the_value() {
    let out = tempfile::tempdir().unwrap();
    let setups = [setup(Contender::Evenhand)];
    let records = run_in(out.path(), &trials(&setups), 2, &|setup, _, _, _| {
        let mut seen = made_up(setup);
        seen.figures.rho_loss = [None, Some(0.5), Some(0.7), Some(0.6)][setup.seed as usize];
        seen.figures.rho_staleness = [None, Some(0.5), None, Some(0.8)][setup.seed as usize];
        Ok(seen)
    });
    let text = plan(&setups).answer(&records.unwrap(), TRIALS).text();
    // Values 0.5, 0.7, 0.6: deviation 0.1, over √3. Values 0.5, 0.8: deviation 0.3/√2, over √2.
    assert!(text.contains("0.600 ± 0.058 [0.647]"), "{text}");
    assert!(text.contains("0.650 ± 0.150 (2 of 3)"), "{text}");
}

#[test]
fn only_what_is_missing_is_run() {
    let out = tempfile::tempdir().unwrap();
    let wanted = trials(&all());
    let ran = Mutex::new(Vec::new());
    let run: &RunTrial<'_> = &|setup, _, _, _| {
        ran.lock().unwrap().push(setup.path());
        Ok(made_up(setup))
    };
    run_in(out.path(), &wanted[..7], 2, run).unwrap();
    assert_eq!(ran.lock().unwrap().len(), 7);
    let records = run_in(out.path(), &wanted, 2, run).unwrap();
    let ran = ran.into_inner().unwrap();
    assert_eq!(ran.len(), wanted.len());
    assert_eq!(ran.into_iter().collect::<BTreeSet<_>>(), wanted.iter().map(Setup::path).collect());
    assert!(records.is_complete());
    let read = records.get(&wanted[0]).unwrap();
    assert_eq!((&read.setup, read.figures.t_alpha), (&wanted[0], made_up(&wanted[0]).figures.t_alpha));
}

#[test]
fn what_is_kept_can_be_shown_without_running_anything() {
    let out = tempfile::tempdir().unwrap();
    let wanted = trials(&all());
    run_in(out.path(), &wanted[..4], 1, &|setup, _, _, _| Ok(made_up(setup))).unwrap();
    let kept = Records::kept(out.path(), &wanted).unwrap();
    assert_eq!((kept.done(), kept.wanted), (4, 30));
    let table = plan(&all()).answer(&kept, TRIALS).without_empty_rows();
    let names: Vec<&str> = table.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["Evenhand", "Evenhand, no replacement"]);
    assert!(table.rows[1].cells[0].text().ends_with("(1 of 3)"), "{}", table.rows[1].cells[0].text());
}

#[test]
fn a_trial_that_is_asked_for_twice_is_run_once() {
    let out = tempfile::tempdir().unwrap();
    let ran = AtomicUsize::new(0);
    let twice = [setup(Contender::Gog), setup(Contender::Gog)];
    let records = run_in(out.path(), &twice, 2, &|setup, _, _, _| {
        ran.fetch_add(1, Ordering::Relaxed);
        Ok(made_up(setup))
    });
    assert!(records.unwrap().is_complete());
    assert_eq!(ran.into_inner(), 1);
}

#[test]
fn strategies_of_a_trial_share_its_data() {
    let out = tempfile::tempdir().unwrap();
    let (loaded, interrupt) = (Mutex::new(Vec::new()), Interrupt::default());
    let load = |setup: &Setup| {
        loaded.lock().unwrap().push(setup.seed);
        no_data(setup)
    };
    let laboratory = Laboratory {
        out: out.path(),
        jobs: 1,
        load: &load,
        run: &|setup, _, _, _| Ok(made_up(setup)),
        interrupt: &interrupt,
    };
    laboratory.records(&trials(&all()), Progress::new(std::io::sink(), Style::Silent)).unwrap();
    assert_eq!(loaded.into_inner().unwrap(), [1, 2, 3]);
}

#[test]
fn data_are_forgotten_after_their_last_trial() {
    let out = tempfile::tempdir().unwrap();
    let noises = [Corruption::FeatureNoise, Corruption::LabelNoise];
    let setups = noises.map(|corruption| Setup { corruption, ..setup(Contender::Evenhand) });
    let pools: Mutex<Vec<Weak<Pool>>> = Mutex::default();
    let run: &RunTrial<'_> = &|setup, pool, _, _| {
        let mut pools = pools.lock().unwrap();
        pools.push(Arc::downgrade(pool));
        let alive = pools.iter().filter_map(Weak::upgrade).filter(|other| !Arc::ptr_eq(other, pool)).count();
        assert_eq!(alive, 0, "data of another seed are still there");
        Ok(made_up(setup))
    };
    run_in(out.path(), &trials(&setups), 1, run).unwrap();
    assert_eq!(pools.into_inner().unwrap().len(), 6);
}

#[test]
fn repeated_samples_are_told_beside_the_figures() {
    let out = tempfile::tempdir().unwrap();
    let setups = [setup(Contender::Evenhand)];
    let run: &RunTrial<'_> = &|setup, _, _, _| Ok(Seen { passes: setup.seed as usize, ..made_up(setup) });
    let records = run_in(out.path(), &trials(&setups), 1, run).unwrap();
    let said = "Samples are seen up to 3 times";
    assert_eq!(plan(&setups).answer(&records, TRIALS).text().matches(said).count(), 1);
    assert!(!plan(&setups).answer(&records, 1).text().contains("Samples are seen"), "seed 1 has enough");
    let figures = ExperimentFigures::of(&setups, TRIALS, &records).unwrap();
    assert!(figures.notes.iter().any(|note| note.starts_with(said)), "{:?}", figures.notes);
}

/// The record of a trial on disk, changed by hand.
fn edited(out: &Path, setup: &Setup, edit: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>)) {
    Record::new(setup.clone(), made_up(setup), 1.0, None).save(out).unwrap();
    let path = out.join(setup.path());
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(json.as_object_mut().unwrap());
    fs::write(&path, json.to_string()).unwrap();
}

#[test]
fn the_first_records_which_name_no_format_are_read() {
    let out = tempfile::tempdir().unwrap();
    let wanted = setup(Contender::Evenhand);
    edited(out.path(), &wanted, |record| {
        assert_eq!(record.remove("format"), Some(1.into()));
        record.remove("passes").unwrap();
    });
    let read = Record::load(out.path(), &wanted).unwrap().unwrap();
    assert_eq!((read.format, read.passes), (1, 1));
}

#[test]
fn results_of_another_format_are_refused_with_a_remedy() {
    let out = tempfile::tempdir().unwrap();
    let wanted = setup(Contender::Evenhand);
    edited(out.path(), &wanted, |record| {
        record.insert("format".into(), 2.into());
        record.insert("what only they know".into(), 1.into());
    });
    let error = Record::load(out.path(), &wanted).unwrap_err();
    assert!(matches!(error, RecordError::OtherFormat { found: 2, .. }), "{error}");
    let sentence = error.to_string();
    assert!(sentence.contains("format 2, not 1") && sentence.contains("another --out DIR"), "{sentence}");
    assert_eq!(FleetError::from(error).exit(), Exit::Usage);
}

#[test]
fn fields_that_nobody_knows_are_refused() {
    let out = tempfile::tempdir().unwrap();
    let wanted = setup(Contender::Evenhand);
    edited(out.path(), &wanted, |record| {
        record.insert("colour".into(), 1.into());
    });
    let error = Record::load(out.path(), &wanted).unwrap_err();
    assert!(
        matches!(error, RecordError::Malformed { .. }) && error.to_string().contains("colour"),
        "{error}"
    );
    edited(out.path(), &wanted, |record| record["setup"]["colour"] = 1.into());
    assert!(Record::load(out.path(), &wanted).is_err());
}

#[test]
fn results_that_cannot_be_kept_are_no_fault_of_the_command_line() {
    let out = tempfile::tempdir().unwrap();
    let error = run_in(out.path(), &[setup(Contender::Gog)], 1, &|setup, _, _, _| {
        fs::write(out.path().join("mnist"), "a file where a folder should be").unwrap();
        Ok(made_up(setup))
    })
    .unwrap_err();
    assert!(matches!(error, FleetError::Record(RecordError::Unwritable { .. })), "{error}");
    assert_eq!(error.exit(), Exit::Software);
}

#[test]
fn results_of_other_settings_are_refused_with_a_remedy() {
    let out = tempfile::tempdir().unwrap();
    let wanted = setup(Contender::Evenhand);
    let path = out.path().join(wanted.path());
    let other = Setup { learning_rate: 0.5, ..wanted.clone() };
    Record::new(other.clone(), made_up(&other), 1.0, None).save(out.path()).unwrap();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::rename(out.path().join(other.path()), &path).unwrap();
    let error = run_in(out.path(), &[wanted], 1, &|_, _, _, _| panic!("must not be run")).unwrap_err();
    assert!(matches!(error, FleetError::Record(RecordError::OtherSetup { .. })), "{error}");
    let sentence = error.to_string();
    assert!(sentence.contains(&path.display().to_string()), "{sentence}");
    assert!(sentence.contains("learning-rate 0.5, not 0.002"), "{sentence}");
    assert!(sentence.contains("another --out DIR"), "{sentence}");
}

#[test]
fn a_file_that_is_no_result_is_refused_with_a_remedy() {
    let out = tempfile::tempdir().unwrap();
    let wanted = setup(Contender::Evenhand);
    let path = out.path().join(wanted.path());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "{\"setup\": 1").unwrap();
    let error = run_in(out.path(), &[wanted], 1, &|_, _, _, _| panic!("must not be run")).unwrap_err();
    let sentence = error.to_string();
    assert!(sentence.contains("is no result of a trial") && sentence.contains("--out DIR"), "{sentence}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"setup\": 1", "what is not ours stays as it is");
}

#[test]
fn an_interrupted_run_leaves_whole_files_only_and_goes_on_later() {
    let out = tempfile::tempdir().unwrap();
    let wanted = trials(&all());
    let (interrupt, begun) = (Interrupt::default(), AtomicUsize::new(0));
    let run: &RunTrial<'_> = &|setup, _, interrupt, on_round| {
        let mut seen = made_up(setup);
        if begun.fetch_add(1, Ordering::Relaxed) == 4 {
            on_round(1);
            interrupt.raise();
        }
        if interrupt.is_raised() {
            seen.figures.ended = Ended::Interrupted;
        }
        Ok(seen)
    };
    let laboratory = Laboratory { out: out.path(), jobs: 1, load: &no_data, run, interrupt: &interrupt };
    let records = laboratory.records(&wanted, Progress::new(std::io::sink(), Style::Silent)).unwrap();
    assert_eq!((records.done(), records.is_complete()), (4, false));
    let kept = files(out.path());
    assert_eq!(kept.len(), 4, "{kept:?}");
    for path in &kept {
        let record: Record = serde_json::from_slice(&fs::read(out.path().join(path)).unwrap()).unwrap();
        assert_eq!((record.setup.path(), record.figures.ended), (path.clone(), Ended::Complete));
    }
    assert!(finished(out.path(), 2).is_complete());
    assert_eq!(files(out.path()).len(), wanted.len());
}

#[test]
fn a_federation_that_gives_up_leaves_the_other_trials_alone() {
    let out = tempfile::tempdir().unwrap();
    let setups = [setup(Contender::Evenhand), setup(Contender::Fedavg)];
    let ran = AtomicUsize::new(0);
    let run: &RunTrial<'_> = &|setup, _, _, _| {
        ran.fetch_add(1, Ordering::Relaxed);
        match (setup.contender, setup.seed) {
            (Contender::Evenhand, 2) => Err(Cause::Diverged { round: 7 }.into()),
            _ => Ok(made_up(setup)),
        }
    };
    for expected in [6, 7] {
        let records = run_in(out.path(), &trials(&setups), 2, run).unwrap();
        assert_eq!(ran.load(Ordering::Relaxed), expected, "all, then the failed one again");
        assert_eq!((records.done(), records.is_complete(), records.exit()), (5, true, Exit::Software));
        let [failure] = records.failed.as_slice() else { panic!("{:?}", records.failed) };
        assert_eq!(failure.path, out.path().join(setups[0].with_seed(2).path()));
        assert!(failure.cause.to_string().contains("diverged in round 7"), "{}", failure.cause);
        let text = plan(&setups).answer(&records, TRIALS).text();
        assert!(text.contains("(2 of 3)"), "{text}");
    }
    assert_eq!(Records::kept(out.path(), &trials(&setups)).unwrap().exit(), Exit::Ok, "nothing was run");
}

#[test]
fn a_trial_that_fails_ends_the_run_with_its_error() {
    let out = tempfile::tempdir().unwrap();
    let error = run_in(out.path(), &trials(&all()), 2, &|setup, _, _, _| match setup.contender {
        Contender::Cons => Err(FleetError::Defect("on purpose".into())),
        _ => Ok(made_up(setup)),
    });
    assert_eq!(error.unwrap_err().to_string(), "a defect: on purpose");
    assert!(!files(out.path()).is_empty(), "what was done is kept");
}

#[test]
fn a_model_that_diverged_is_kept_without_what_is_no_number() {
    let out = tempfile::tempdir().unwrap();
    let setups = [setup(Contender::QFfl)];
    let diverged: &RunTrial<'_> = &|setup, _, _, _| {
        let mut seen = made_up(setup);
        seen.figures.rho_loss = Some(f64::NAN);
        seen.figures.online_accuracy =
            seen.figures.online_accuracy.map(|s| Summary { mean: f64::INFINITY, ..s });
        seen.figures.nodes[3].online_loss = f64::NAN;
        seen.curve.scores[5] = None;
        Ok(seen)
    };
    run_in(out.path(), &trials(&setups), 1, diverged).unwrap();
    let again = run_in(out.path(), &trials(&setups), 1, &|_, _, _, _| panic!("must not be run")).unwrap();
    let text = plan(&setups).answer(&again, TRIALS).text();
    assert!(text.contains('–') && !text.contains("NaN") && !text.contains("inf"), "{text}");
    assert!(!page::experiment(&setups, TRIALS, &again).contains("NaN"));
}

#[test]
fn parallel_trials_give_the_table_of_one_after_another() {
    let folders = [1, 2, 7].map(|jobs| (jobs, tempfile::tempdir().unwrap()));
    let texts = folders.each_ref().map(|(jobs, folder)| {
        let records = finished(folder.path(), *jobs);
        let mut text = plan(&all()).answer(&records, TRIALS).markdown();
        // The last column is the time of a trial.
        text = text.lines().map(|line| line.rsplitn(3, '|').last().unwrap().to_owned() + "\n").collect();
        text
    });
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[0], texts[2]);
}

#[test]
fn the_json_object_has_the_promised_shape() {
    let out = tempfile::tempdir().unwrap();
    let records = finished(out.path(), 2);
    let figures = ExperimentFigures::of(&all(), TRIALS, &records).unwrap();
    let json = serde_json::to_value(&figures).unwrap();
    assert_eq!(json["settings"]["dataset"], "mnist");
    let strategies = json["strategies"].as_array().unwrap();
    assert_eq!(strategies.len(), 10);
    let (first, fedavg) = (&strategies[0], &strategies[4]);
    assert_eq!((&first["name"], &first["trials"]), (&"evenhand".into(), &3.into()));
    assert_eq!(first["rho_loss"]["values"].as_array().unwrap().len(), 3);
    for number in ["mean", "standard_error"] {
        assert!(first["rho_loss"][number].is_f64() && first["online_accuracy"]["min"][number].is_f64());
    }
    assert_eq!(first["t_alpha"]["mean"], 42.0);
    assert_eq!((fedavg["name"].as_str(), fedavg["rho_loss"].is_null()), (Some("fedavg"), true));
}

#[test]
fn text_markdown_and_page_name_every_strategy_and_no_nan() {
    let out = tempfile::tempdir().unwrap();
    let records = finished(out.path(), 2);
    let table = plan(&all()).answer(&records, TRIALS);
    let page = page::experiment(&all(), TRIALS, &records);
    for shown in [table.text(), table.markdown(), page] {
        for contender in Contender::all() {
            assert!(shown.contains(contender.label()), "{} is missing in\n{shown}", contender.label());
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
        assert_eq!(plots, if setups[0].contender.is_ours() { 5 } else { 3 });
        assert!(page.contains("evenhand-fleet experiment --dataset mnist"), "how to repeat it");
        for reference in ["http:", "https:", "//", "src=", "href=", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(reference), "the page contains {reference}");
        }
    }
}

fn scope() -> Scope {
    let (contenders, corruptions) = (Contender::all(), paper::CORRUPTIONS.to_vec());
    Scope { contenders, corruptions, as_published: AsPublished::Paper, questions: 0, seed: 1 }
}

#[test]
fn the_paper_shares_trials_with_experiments_and_among_its_tables() {
    let scope = scope();
    let out = tempfile::tempdir().unwrap();
    finished(out.path(), 2);
    let plans = paper::plans(TableName::Fairness, Dataset::Mnist, &scope);
    let fairness: Vec<Setup> = plans.iter().flat_map(|plan| plan.setups(TRIALS)).collect();
    let ran = AtomicUsize::new(0);
    let run: &RunTrial<'_> = &|setup, _, _, _| {
        ran.fetch_add(1, Ordering::Relaxed);
        Ok(made_up(setup))
    };
    let records = run_in(out.path(), &fairness, 2, run).unwrap();
    assert_eq!(
        ran.load(Ordering::Relaxed),
        3 * 10 * 3,
        "three corruptions more, ten strategies, three trials"
    );
    let tables: Vec<_> = plans.iter().map(|plan| plan.answer(&records, TRIALS)).collect();
    let row = &tables[0].rows[0];
    assert_eq!((row.cells.len(), row.cells[0].published, row.cells[2].published), (4, Some("0.647"), None));
    let performance = paper::plans(TableName::Performance, Dataset::Mnist, &scope);
    let setups: Vec<Setup> = performance.iter().flat_map(|plan| plan.setups(TRIALS)).collect();
    run_in(out.path(), &setups, 2, run).unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 90, "performance is read off the trials of fairness");
}

#[test]
fn tables_ask_no_data_set_for_what_it_cannot_have() {
    let corruptions = vec![Corruption::Heterogeneity, Corruption::LabelNoise];
    let scope = Scope { corruptions, ..scope() };
    let heads = |dataset| paper::plans(TableName::Fairness, dataset, &scope)[0].heads.clone();
    assert_eq!(heads(Dataset::Mnist), ["strategy", "heterogeneity", "label noise"]);
    assert_eq!(heads(Dataset::Electricity), ["strategy", "label noise"]);
}

#[test]
fn every_table_of_the_paper_can_be_filled_and_written() {
    let scope = scope();
    let out = tempfile::tempdir().unwrap();
    for dataset in [Dataset::Mnist, Dataset::Electricity, Dataset::Synthetic] {
        for name in TableName::All.each() {
            let plans = paper::plans(name, dataset, &scope);
            let classes = dataset != Dataset::Electricity;
            assert_eq!(plans.is_empty(), name == TableName::Heterogeneity && !classes);
            let setups: Vec<Setup> = plans.iter().flat_map(|plan| plan.setups(1)).collect();
            let records = run_in(out.path(), &setups, 2, &|setup, _, _, _| Ok(made_up(setup))).unwrap();
            for table in plans.iter().map(|plan| plan.answer(&records, 1)) {
                let markdown = table.markdown();
                assert!(table.rows.iter().all(|row| row.cells.len() + 1 == table.columns.len()));
                assert!(!markdown.contains("NaN") && markdown.lines().count() > table.rows.len());
            }
        }
    }
    let beta = &paper::plans(TableName::Beta, Dataset::Mnist, &scope)[0];
    let kept = Records::kept(out.path(), &beta.setups(1).collect::<Vec<_>>()).unwrap();
    let page = page::paper("β", &[beta.answer(&kept, 1)], &[], 1, &kept);
    let document = roxmltree::Document::parse(page.strip_prefix("<!doctype html>\n").unwrap()).unwrap();
    let dots = document.descendants().filter(|node| node.has_tag_name("circle")).count();
    assert_eq!((dots, page.contains("NaN")), (5, false), "one dot a β");
    let names: Vec<&str> = beta.rows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["1/30", "1/75", "1/150", "1/300", "1/1500"]);
    assert!(beta.rows[2].1[0].setup.differences().is_empty(), "β as published is a trial of `experiment`");
}
