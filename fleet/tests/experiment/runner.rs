//! The trial runner: missing trials, shared data, early ends.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use evenhand_federation::FailureCause;
use evenhand_fleet::data::SamplePool;
use evenhand_fleet::experiment::comparison::table_plan;
use evenhand_fleet::experiment::progress::TrialProgress;
use evenhand_fleet::experiment::record::TrialRecord;
use evenhand_fleet::experiment::runner::{RunTrial, TrialRecords, TrialRunner};
use evenhand_fleet::experiment::setup::Setup;
use evenhand_fleet::experiment::variant::Variant;
use evenhand_fleet::scenario::Corruption;
use evenhand_fleet::sim::Interrupt;
use evenhand_fleet::sim::RunEnd;
use evenhand_fleet::sim::SimulationError;
use evenhand_fleet::sim::progress::ProgressStyle;
use evenhand_program::exit::Exit;

use super::synthetic_trials::{TRIALS, all, finished, invented, no_data, run_in, setup, trials};

#[test]
fn only_missing_trials_are_run() {
    let out = tempfile::tempdir().unwrap();
    let wanted = trials(&all());
    let ran = Mutex::new(Vec::new());
    let run: &RunTrial<'_> = &|setup, _, _, _| {
        ran.lock().unwrap().push(setup.path());
        Ok(invented(setup))
    };
    run_in(out.path(), &wanted[..7], 2, run).unwrap();
    assert_eq!(ran.lock().unwrap().len(), 7);
    let records = run_in(out.path(), &wanted, 2, run).unwrap();
    let ran = ran.into_inner().unwrap();
    assert_eq!(ran.len(), wanted.len());
    assert_eq!(ran.into_iter().collect::<BTreeSet<_>>(), wanted.iter().map(Setup::path).collect());
    assert!(records.is_complete());
    let read = records.get(&wanted[0]).unwrap();
    assert_eq!((&read.setup, read.figures.t_alpha), (&wanted[0], invented(&wanted[0]).figures.t_alpha));
}

#[test]
fn a_trial_that_is_asked_for_twice_is_run_once() {
    let out = tempfile::tempdir().unwrap();
    let ran = AtomicUsize::new(0);
    let twice = [setup(Variant::Gog), setup(Variant::Gog)];
    let records = run_in(out.path(), &twice, 2, &|setup, _, _, _| {
        ran.fetch_add(1, Ordering::Relaxed);
        Ok(invented(setup))
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
    let runner = TrialRunner {
        out: out.path(),
        jobs: 1,
        load: &load,
        run: &|setup, _, _, _| Ok(invented(setup)),
        interrupt: &interrupt,
    };
    runner.records(&trials(&all()), TrialProgress::new(std::io::sink(), ProgressStyle::Silent)).unwrap();
    assert_eq!(loaded.into_inner().unwrap(), [1, 2, 3]);
}

#[test]
fn pools_are_dropped_after_their_last_trial() {
    let out = tempfile::tempdir().unwrap();
    let noises = [Corruption::FeatureNoise, Corruption::LabelNoise];
    let setups = noises.map(|corruption| Setup { corruption, ..setup(Variant::Paper) });
    let pools: Mutex<Vec<Weak<SamplePool>>> = Mutex::default();
    let run: &RunTrial<'_> = &|setup, pool, _, _| {
        let mut pools = pools.lock().unwrap();
        pools.push(Arc::downgrade(pool));
        let alive = pools.iter().filter_map(Weak::upgrade).filter(|other| !Arc::ptr_eq(other, pool)).count();
        assert_eq!(alive, 0, "data of another seed are still there");
        Ok(invented(setup))
    };
    run_in(out.path(), &trials(&setups), 1, run).unwrap();
    assert_eq!(pools.into_inner().unwrap().len(), 6);
}

#[test]
fn parallel_trials_give_the_table_of_one_after_another() {
    let folders = [1, 2, 7].map(|jobs| (jobs, tempfile::tempdir().unwrap()));
    let texts = folders.each_ref().map(|(jobs, folder)| {
        let records = finished(folder.path(), *jobs);
        let mut text = table_plan(&all()).fill(&records, TRIALS).markdown();
        // The last column is the time of a trial.
        text = text.lines().map(|line| line.rsplitn(3, '|').last().unwrap().to_owned() + "\n").collect();
        text
    });
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[0], texts[2]);
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
fn an_interrupted_run_leaves_whole_files_only_and_goes_on_later() {
    let out = tempfile::tempdir().unwrap();
    let wanted = trials(&all());
    let (interrupt, begun) = (Interrupt::default(), AtomicUsize::new(0));
    let run: &RunTrial<'_> = &|setup, _, interrupt, on_round| {
        let mut seen = invented(setup);
        if begun.fetch_add(1, Ordering::Relaxed) == 4 {
            on_round(1);
            interrupt.raise();
        }
        if interrupt.is_raised() {
            seen.figures.ended = RunEnd::Interrupted;
        }
        Ok(seen)
    };
    let runner = TrialRunner { out: out.path(), jobs: 1, load: &no_data, run, interrupt: &interrupt };
    let records =
        runner.records(&wanted, TrialProgress::new(std::io::sink(), ProgressStyle::Silent)).unwrap();
    assert_eq!((records.done(), records.is_complete()), (4, false));
    let stored = files(out.path());
    assert_eq!(stored.len(), 4, "{stored:?}");
    for path in &stored {
        let record: TrialRecord = serde_json::from_slice(&fs::read(out.path().join(path)).unwrap()).unwrap();
        assert_eq!((record.setup.path(), record.figures.ended), (path.clone(), RunEnd::Complete));
    }
    assert!(finished(out.path(), 2).is_complete());
    assert_eq!(files(out.path()).len(), wanted.len());
}

#[test]
fn a_failed_federation_leaves_the_other_trials_alone() {
    let out = tempfile::tempdir().unwrap();
    let setups = [setup(Variant::Paper), setup(Variant::Fedavg)];
    let ran = AtomicUsize::new(0);
    let run: &RunTrial<'_> = &|setup, _, _, _| {
        ran.fetch_add(1, Ordering::Relaxed);
        match (setup.variant, setup.seed) {
            (Variant::Paper, 2) => Err(SimulationError::Failed(FailureCause::Diverged { round: 7 }).into()),
            _ => Ok(invented(setup)),
        }
    };
    for expected in [6, 7] {
        let records = run_in(out.path(), &trials(&setups), 2, run).unwrap();
        assert_eq!(ran.load(Ordering::Relaxed), expected, "all, then the failed one again");
        assert_eq!((records.done(), records.is_complete(), records.exit()), (5, true, Exit::Software));
        let [failure] = records.failed.as_slice() else { panic!("{:?}", records.failed) };
        assert_eq!(failure.path, out.path().join(setups[0].with_seed(2).path()));
        assert!(failure.cause.to_string().contains("diverged in round 7"), "{}", failure.cause);
        let text = table_plan(&setups).fill(&records, TRIALS).text();
        assert!(text.contains("(2 of 3)"), "{text}");
    }
    assert_eq!(
        TrialRecords::stored(out.path(), &trials(&setups)).unwrap().exit(),
        Exit::Ok,
        "nothing was run"
    );
}

#[test]
fn a_trial_that_fails_ends_the_run_with_its_error() {
    let out = tempfile::tempdir().unwrap();
    let error = run_in(out.path(), &trials(&all()), 2, &|setup, _, _, _| match setup.variant {
        Variant::Cons => Err(SimulationError::Defect("on purpose".into()).into()),
        _ => Ok(invented(setup)),
    });
    assert_eq!(error.unwrap_err().to_string(), "a defect: on purpose");
    assert!(!files(out.path()).is_empty(), "what was done is stored");
}
