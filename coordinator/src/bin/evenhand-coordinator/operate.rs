//! What an operator does with a state folder, whether a coordinator runs on it or not.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use evenhand_coordinator::control::{self, ControlError, Request, Status};
use evenhand_coordinator::store::{FILE, Store, StoreError};
use evenhand_federation::Command;
use evenhand_models::{LoadOptions, Model};
use evenhand_protocol::exit::Exit;
use evenhand_report::{self as report, outcome::Outcome};

use super::{Failure, print};

/// How long another process may look at the state before it counts as in use.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

pub(super) fn status(state: &Path, json: bool) -> Result<(), Failure> {
    let status = match open(state)? {
        Opened::Ours(store) => {
            let last = store.log()?.last()?;
            Status::new(&store.federation()?, last.as_ref(), None)
        }
        Opened::Running(status) => *status,
    };
    if json {
        let text = serde_json::to_string(&status).map_err(|error| Failure::new(Exit::Software, error))?;
        print(format_args!("{text}\n"))
    } else {
        print(status)
    }
}

pub(super) fn command(state: &Path, command: Command) -> Result<(), Failure> {
    let status = control::ask(state, &Request::Command(command))?;
    print(format_args!("{}, round {} of {}\n", status.phase, status.round, status.rounds))
}

pub(super) fn export(state: &Path, output: &Path) -> Result<(), Failure> {
    let (store, _copy) = at_rest(state)?;
    let federation = store.federation()?;
    let rounds = store.log()?.last()?.map_or(0, |record| record.round);
    let weights = federation.weights();
    let data = |error| Failure::new(Exit::Data, anyhow::Error::new(error));
    let model = Model::load(federation.onnx(), &LoadOptions::default()).map_err(data)?;
    let metadata = [
        ("evenhand.federation", federation.rules().federation.name.to_string()),
        ("evenhand.round", rounds.to_string()),
        ("evenhand.weights_sha256", weights.digest().to_string()),
    ];
    let metadata = metadata.each_ref().map(|(name, value)| (*name, value.as_str()));
    let onnx = model.export(weights.values(), &metadata).map_err(data)?;
    write(output, &onnx)?;
    print(format_args!("{} after round {rounds}: {}\n", output.display(), weights.digest()))
}

pub(super) fn report(state: &Path, output: &Path) -> Result<(), Failure> {
    let (store, _copy) = at_rest(state)?;
    let records = store.log()?.records()?.collect::<Result<Vec<_>, _>>()?;
    let command = format!("evenhand-coordinator report {} --output {}", state.display(), output.display());
    let outcome = Outcome::told_by_coordinator(&store.federation()?, &records, command);
    write(output, report::html(&outcome, &outcome.figures()).as_bytes())?;
    print(format_args!("{} of {} rounds\n", output.display(), records.len()))
}

pub(super) fn audit(state: &Path) -> Result<(), Failure> {
    let (store, _copy) = at_rest(state)?;
    let audit = store.audit()?;
    if let Some(difference) = audit.difference {
        return Err(Failure::new(Exit::Data, anyhow!("{difference}")));
    }
    print(format_args!("{} rounds agree\n", audit.recomputed))?;
    match audit.followed {
        0 => Ok(()),
        earlier => print(format_args!(
            "{earlier} earlier rounds follow on each other; their updates are no longer kept\n"
        )),
    }
}

pub(super) fn backup(state: &Path, to: &Path) -> Result<(), Failure> {
    match open(state)? {
        Opened::Ours(store) => store.back_up(to)?,
        Opened::Running(_) => {
            let to = absolute(to)?;
            control::ask(state, &Request::Backup(to.clone()))?;
            // The coordinator may see other folders under the same names, as a service with a /tmp of its own does.
            if !to.join(FILE).exists() {
                return Err(Failure::new(
                    Exit::Usage,
                    anyhow!(
                        "the coordinator has copied its state to a {} that only it can see; name a folder in {}",
                        to.display(),
                        state.display()
                    ),
                ));
            }
        }
    }
    print(format_args!("copied to {}\n", to.display()))
}

/// A state folder: open for us, or in the hands of a running coordinator.
enum Opened {
    Ours(Store),
    Running(Box<Status>),
}

fn open(state: &Path) -> Result<Opened, Failure> {
    match claim(state, || Store::open(state)) {
        Ok(store) => Ok(Opened::Ours(store)),
        Err(StoreError::InUse { folder }) => match control::ask(state, &Request::Status) {
            Ok(status) => Ok(Opened::Running(Box::new(status))),
            Err(ControlError::NotRunning(_)) => Err(StoreError::InUse { folder }.into()),
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// Opens a store. Whoever only looks at it has it for a moment; a coordinator that runs, for good.
pub(super) fn claim(state: &Path, open: impl Fn() -> Result<Store, StoreError>) -> Result<Store, StoreError> {
    let began = Instant::now();
    loop {
        match open() {
            Err(StoreError::InUse { .. }) if !control::runs(state) && began.elapsed() < PATIENCE => {
                thread::sleep(PAUSE);
            }
            opened => return opened,
        }
    }
}

/// The state for reading: itself, or a copy of what a running coordinator has.
fn at_rest(state: &Path) -> Result<(Store, Option<StateCopy>), Failure> {
    match open(state)? {
        Opened::Ours(store) => Ok((store, None)),
        Opened::Running(_) => {
            let copy = StateCopy(absolute(state)?.join(format!("copy-{}", std::process::id())));
            control::ask(state, &Request::Backup(copy.0.clone()))?;
            Ok((Store::open(&copy.0)?, Some(copy)))
        }
    }
}

/// A copy of the state that is removed after use. It lies with the state: no other folder is sure to be writable for the
/// coordinator, readable for us and private.
struct StateCopy(PathBuf);

impl Drop for StateCopy {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(%error, "cannot remove {}", self.0.display());
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::new(Exit::Usage, error))
}

/// Writes all of a file or nothing.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = || {
        let mut draft = path.as_os_str().to_owned();
        draft.push(".part");
        fs::write(&draft, bytes)?;
        fs::rename(&draft, path)
    };
    written().map_err(|error| Failure::new(Exit::Usage, anyhow!("cannot write {}: {error}", path.display())))
}
