//! The trial runner: trials that are missing are run in parallel, and stored as soon as they are done.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use evenhand_federation::FailureCause;
use evenhand_program::exit::Exit;

use super::ExperimentError;
use super::pool_cache::PoolCache;
use super::progress::TrialProgress;
use super::record::{RecordError, TrialRecord, TrialResult};
use super::setup::Setup;
use super::workers;
use super::worth::truth::KnownWorths;
use crate::data::SamplePool;
use crate::sim::RunEnd;
use crate::sim::{Interrupt, SimulationError};

/// A function that runs one trial; its callback is called with each closed round.
pub type RunTrial<'a> = dyn Fn(&Setup, &Arc<SamplePool>, &Interrupt, &mut dyn FnMut(u32)) -> Result<TrialResult, ExperimentError>
    + Sync
    + 'a;
/// A function that reads the data of a trial.
pub type LoadPool<'a> = dyn Fn(&Setup) -> Result<SamplePool, ExperimentError> + Sync + 'a;

/// The runner of trials.
pub struct TrialRunner<'a> {
    /// The folder of records.
    pub out: &'a Path,
    /// Trials at the same time.
    pub jobs: usize,
    /// The reader of data.
    pub load: &'a LoadPool<'a>,
    /// The runner of one trial.
    pub run: &'a RunTrial<'a>,
    /// The user's request to end.
    pub interrupt: &'a Interrupt,
}

/// All records that were asked for, or as many as there are.
#[derive(Debug, Default)]
pub struct TrialRecords {
    by_path: BTreeMap<PathBuf, TrialRecord>,
    /// Trials that were asked for.
    pub wanted: usize,
    /// Trials that were run and have no figures.
    pub failed: Vec<FailedTrial>,
}

/// A trial whose federation failed.
#[derive(Debug)]
pub struct FailedTrial {
    /// The path that its record would have.
    pub path: PathBuf,
    /// The cause.
    pub cause: FailureCause,
}

impl TrialRecords {
    /// The stored records of `setups` in the folder `out`, each counted once.
    pub fn stored(out: &Path, setups: &[Setup]) -> Result<Self, RecordError> {
        let mut records = Self::default();
        let mut paths = BTreeSet::new();
        for setup in setups.iter().filter(|setup| paths.insert(setup.path())) {
            records.wanted += 1;
            if let Some(record) = TrialRecord::load(out, setup)? {
                records.put(out, record)?;
            }
        }
        Ok(records)
    }

    /// The record of a trial.
    pub fn get(&self, setup: &Setup) -> Option<&TrialRecord> {
        self.by_path.get(&setup.path())
    }

    /// True if a trial was run and has no figures.
    pub fn has_failed(&self, setup: &Setup) -> bool {
        self.failed.iter().any(|failure| failure.path.ends_with(setup.path()))
    }

    /// Adds the worth of nodes to the trials of which `worths` knows it.
    pub fn with_worths<E>(
        mut self,
        mut worths: impl FnMut(&Setup) -> Result<Option<KnownWorths>, E>,
    ) -> Result<Self, E> {
        for record in self.by_path.values_mut() {
            record.worths = worths(&record.setup)?;
        }
        Ok(self)
    }

    /// The number of records.
    pub fn done(&self) -> usize {
        self.by_path.len()
    }

    /// True if nothing is left to run.
    pub fn is_complete(&self) -> bool {
        self.done() + self.failed.len() == self.wanted
    }

    /// The exit code of a command that shows them.
    pub fn exit(&self) -> Exit {
        if self.failed.is_empty() { Exit::Ok } else { Exit::Software }
    }

    /// Everything, by path.
    pub fn iter(&self) -> impl Iterator<Item = &TrialRecord> {
        self.by_path.values()
    }

    /// Adds a record, unless it was made of other files than the others.
    fn put(&mut self, out: &Path, record: TrialRecord) -> Result<(), RecordError> {
        let of = |record: &TrialRecord| (record.setup.dataset, record.setup.as_published);
        let kin = self.by_path.values().filter(|other| of(other) == of(&record));
        let expected = kin.filter_map(|other| other.recorded).next();
        match (record.recorded, expected) {
            (Some(found), Some(expected)) if found != expected => {
                let (path, dataset) = (out.join(record.setup.path()), record.setup.dataset);
                Err(RecordError::OtherData { path, dataset, found, expected })
            }
            _ => {
                self.by_path.insert(record.setup.path(), record);
                Ok(())
            }
        }
    }
}

impl TrialRunner<'_> {
    /// The records of `setups`: from disk where they are there, from new trials where not. Fewer when interrupted, or where
    /// a federation failed: the other trials go on.
    pub fn records<W: Write + Send>(
        &self,
        setups: &[Setup],
        progress: TrialProgress<W>,
    ) -> Result<TrialRecords, ExperimentError> {
        let records = TrialRecords::stored(self.out, setups)?;
        let mut paths = BTreeSet::new();
        let absent = |setup: &&Setup| records.get(setup).is_none() && paths.insert(setup.path());
        let mut missing: Vec<&Setup> = setups.iter().filter(absent).collect();
        // Seed by seed, so that trials that share data run together, and every variant soon has its first trial.
        missing.sort_by_key(|setup| (setup.dataset as usize, setup.seed, setup.corruption as usize));
        let mut progress = progress;
        progress.start(&records, &missing, self.jobs);
        let state = Mutex::new((records, progress));
        let outcome = self.run_missing(&missing, &state);
        let (mut records, mut progress) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        progress.finish();
        records.failed.sort_by(|one, other| one.path.cmp(&other.path));
        outcome.map(|()| records)
    }

    fn run_missing<W: Write + Send>(
        &self,
        missing: &[&Setup],
        state: &Mutex<(TrialRecords, TrialProgress<W>)>,
    ) -> Result<(), ExperimentError> {
        let cache = PoolCache::new(missing);
        workers::for_each(
            missing,
            self.jobs,
            self.interrupt,
            || (),
            |(), setup| self.one(setup, &cache, state),
        )
    }

    fn one<W: Write + Send>(
        &self,
        setup: &Setup,
        cache: &PoolCache,
        state: &Mutex<(TrialRecords, TrialProgress<W>)>,
    ) -> Result<(), ExperimentError> {
        let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = cache.take(setup, self.load)?;
        let begun = Instant::now();
        let seen = (self.run)(setup, &pool, self.interrupt, &mut |round| {
            lock().1.round(setup, round, begun.elapsed().as_secs_f64());
        });
        match seen {
            Ok(seen) if seen.figures.ended == RunEnd::Complete => {
                let seconds = begun.elapsed().as_secs_f64();
                let record = TrialRecord::new(setup.clone(), seen, seconds, &pool);
                lock().0.put(self.out, record.clone())?;
                record.save(self.out)?;
                lock().1.trial(&record);
            }
            Ok(_) => {}
            Err(ExperimentError::Simulation(SimulationError::Failed(cause))) => {
                let mut state = lock();
                state.1.failed(setup);
                state.0.failed.push(FailedTrial { path: self.out.join(setup.path()), cause });
            }
            Err(error) => return Err(error),
        }
        cache.release(setup);
        Ok(())
    }
}
