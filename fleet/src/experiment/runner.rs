//! Many trials: those that are missing are run, side by side, and kept as soon as they are done.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use evenhand_federation::FailureCause;
use evenhand_protocol::exit::Exit;

use super::progress::Progress;
use super::record::{Record, RecordError, Seen};
use super::setup::Setup;
use super::shelf::Shelf;
use crate::FleetError;
use crate::data::Pool;
use crate::outcome::Ended;
use crate::transport::Interrupt;

/// Runs one trial; told of each round that is done.
pub type RunTrial<'a> =
    dyn Fn(&Setup, &Arc<Pool>, &Interrupt, &mut dyn FnMut(u32)) -> Result<Seen, FleetError> + Sync + 'a;
/// Reads the data that a trial needs.
pub type LoadPool<'a> = dyn Fn(&Setup) -> Result<Pool, FleetError> + Sync + 'a;

/// Where trials come from, and where their records go.
pub struct Laboratory<'a> {
    /// The folder of records.
    pub out: &'a Path,
    /// Trials at the same time.
    pub jobs: usize,
    /// What reads data.
    pub load: &'a LoadPool<'a>,
    /// What runs a trial.
    pub run: &'a RunTrial<'a>,
    /// The user's wish to end.
    pub interrupt: &'a Interrupt,
}

/// All records that were asked for, or as many as there are.
#[derive(Debug, Default)]
pub struct Records {
    by_path: BTreeMap<PathBuf, Record>,
    /// Trials that were asked for.
    pub wanted: usize,
    /// Trials that were run and have no figures.
    pub failed: Vec<Failure>,
}

/// A trial whose federation gave up.
#[derive(Debug)]
pub struct Failure {
    /// Where its record would be.
    pub path: PathBuf,
    /// Why.
    pub cause: FailureCause,
}

impl Records {
    /// What is kept in the folder `out` of `setups`, each counted once.
    pub fn kept(out: &Path, setups: &[Setup]) -> Result<Self, RecordError> {
        let mut records = Self::default();
        let mut paths = BTreeSet::new();
        for setup in setups.iter().filter(|setup| paths.insert(setup.path())) {
            records.wanted += 1;
            if let Some(record) = Record::load(out, setup)? {
                records.put(out, record)?;
            }
        }
        Ok(records)
    }

    /// The record of a trial.
    pub fn get(&self, setup: &Setup) -> Option<&Record> {
        self.by_path.get(&setup.path())
    }

    /// Whether a trial was run and has no figures.
    pub fn has_failed(&self, setup: &Setup) -> bool {
        self.failed.iter().any(|failure| failure.path.ends_with(setup.path()))
    }

    /// How many there are.
    pub fn done(&self) -> usize {
        self.by_path.len()
    }

    /// Whether nothing is left to run.
    pub fn is_complete(&self) -> bool {
        self.done() + self.failed.len() == self.wanted
    }

    /// A command's word to the shell about them.
    pub fn exit(&self) -> Exit {
        if self.failed.is_empty() { Exit::Ok } else { Exit::Software }
    }

    /// Everything, by path.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.by_path.values()
    }

    /// Takes it in, unless it was made of other files than those that are there.
    fn put(&mut self, out: &Path, record: Record) -> Result<(), RecordError> {
        let of = |record: &Record| (record.setup.dataset, record.setup.as_published);
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

impl Laboratory<'_> {
    /// The records of `setups`: from disk where they are there, from new trials where not. Fewer when interrupted, or where
    /// a federation gave up: its trial fails, the others go on.
    pub fn records<W: Write + Send>(
        &self,
        setups: &[Setup],
        progress: Progress<W>,
    ) -> Result<Records, FleetError> {
        let records = Records::kept(self.out, setups)?;
        let mut paths = BTreeSet::new();
        let absent = |setup: &&Setup| records.get(setup).is_none() && paths.insert(setup.path());
        let mut missing: Vec<&Setup> = setups.iter().filter(absent).collect();
        // Seed by seed, so that whoever shares data runs while they are there, and every strategy soon has its first trial.
        missing.sort_by_key(|setup| (setup.dataset as usize, setup.seed, setup.corruption as usize));
        let mut progress = progress;
        progress.start(&records, &missing, self.jobs);
        let desk = Mutex::new((records, progress));
        let outcome = self.run_missing(&missing, &desk);
        let (mut records, mut progress) = desk.into_inner().unwrap_or_else(PoisonError::into_inner);
        progress.finish();
        records.failed.sort_by(|one, other| one.path.cmp(&other.path));
        outcome.map(|()| records)
    }

    fn run_missing<W: Write + Send>(
        &self,
        missing: &[&Setup],
        desk: &Mutex<(Records, Progress<W>)>,
    ) -> Result<(), FleetError> {
        let jobs = self.jobs.clamp(1, missing.len().max(1));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let shelf = Shelf::new(missing);
        let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
        let work = || -> Result<(), FleetError> {
            // A pool of threads for each worker: trials do not wait for each other's parts.
            let threads = rayon::ThreadPoolBuilder::new()
                .num_threads((cores / jobs).max(1))
                .build()
                .map_err(|error| FleetError::Runtime(std::io::Error::other(error)))?;
            while !self.interrupt.is_raised() {
                let Some(setup) = missing.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                self.one(setup, &shelf, &threads, desk)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    if let Err(error) = work() {
                        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        self.interrupt.raise();
                    }
                });
            }
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn one<W: Write + Send>(
        &self,
        setup: &Setup,
        shelf: &Shelf,
        threads: &rayon::ThreadPool,
        desk: &Mutex<(Records, Progress<W>)>,
    ) -> Result<(), FleetError> {
        let at_desk = || desk.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = shelf.take(setup, self.load)?;
        let begun = Instant::now();
        let seen = threads.install(|| {
            (self.run)(setup, &pool, self.interrupt, &mut |round| {
                at_desk().1.round(setup, round, begun.elapsed().as_secs_f64());
            })
        });
        match seen {
            Ok(seen) if seen.figures.ended == Ended::Complete => {
                let seconds = begun.elapsed().as_secs_f64();
                let record = Record::new(setup.clone(), seen, seconds, &pool);
                at_desk().0.put(self.out, record.clone())?;
                record.save(self.out)?;
                at_desk().1.trial(&record);
            }
            Ok(_) => {}
            Err(FleetError::Failed(cause)) => {
                let mut desk = at_desk();
                desk.1.failed(setup);
                desk.0.failed.push(Failure { path: self.out.join(setup.path()), cause });
            }
            Err(error) => return Err(error),
        }
        shelf.give_back(setup);
        Ok(())
    }
}
