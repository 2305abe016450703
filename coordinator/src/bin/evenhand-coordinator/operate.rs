//! The operator's commands on a state folder, with or without a running coordinator.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use evenhand_coordinator::control::{self, ControlError, ControlRequest, FederationStatus};
use evenhand_coordinator::store::{FILE, Store, StoreError};
use evenhand_federation::Command;
use evenhand_models::{LoadOptions, Model};
use evenhand_program::atomic::AtomicFile;
use evenhand_program::exit::Exit;
use evenhand_protocol::message::Phase;
use evenhand_report::{ReportSource, RoundLog};

use super::{CommandFailure, print};

/// The limit for another command that reads the state; after it, the state counts as in use.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
const OPEN_RETRY: Duration = Duration::from_millis(20);

pub(super) fn status(state: &Path, json: bool) -> Result<(), CommandFailure> {
    let status = match open(state)? {
        OpenedState::Store(store) => {
            let last = store.log()?.last()?;
            FederationStatus::new(&store.federation()?, last.as_ref(), None)
        }
        OpenedState::Running(status) => *status,
    };
    if json {
        let text =
            serde_json::to_string(&status).map_err(|error| CommandFailure::new(Exit::Software, error))?;
        print(format_args!("{text}\n"))
    } else {
        print(status)
    }
}

pub(super) fn command(state: &Path, command: Command) -> Result<(), CommandFailure> {
    let before = control::send(state, &ControlRequest::Status)?;
    let status = control::send(state, &ControlRequest::Command(command.clone()))?;
    let outcome = outcome(&command, &before).map_or_else(String::new, |outcome| format!("; {outcome}"));
    print(format_args!("{}, {}{outcome}\n", status.phase, status.progress()))
}

/// What a command has done to a federation that was as `before`, where its phase does not say it.
fn outcome(command: &Command, before: &FederationStatus) -> Option<String> {
    let was_paused = before.phase == "paused";
    match command {
        Command::Pause if was_paused => Some("it was paused already".into()),
        Command::Resume if !was_paused => Some("it was not paused".into()),
        Command::Explore => Some("all contributions are measured again from the next round on".into()),
        Command::Remove(node) => {
            let known = before.nodes.iter().find(|known| known.id == node.as_str());
            Some(match known.is_some_and(|known| known.removed) {
                true => format!("{node} was removed already"),
                false => format!("{node} is removed for good; its record stays"),
            })
        }
        Command::Begin | Command::Pause | Command::Resume | Command::Finish => None,
    }
}

pub(super) fn export(state: &Path, output: &Path) -> Result<(), CommandFailure> {
    let (store, _copy) = open_or_copy(state)?;
    let federation = store.federation()?;
    let rounds = store.log()?.last()?.map_or(0, |record| record.round);
    let weights = federation.weights();
    let data = |error| CommandFailure::new(Exit::Data, anyhow::Error::new(error));
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

pub(super) fn report(state: &Path, output: &Path) -> Result<(), CommandFailure> {
    let (store, _copy) = open_or_copy(state)?;
    let records = store.log()?.records()?.collect::<Result<Vec<_>, _>>()?;
    let command = format!("evenhand-coordinator report {} --output {}", state.display(), output.display());
    let federation = store.federation()?;
    let rules = federation.rules();
    let complete = federation.phase() == Phase::Finished && federation.round() >= rules.federation.rounds;
    let source = ReportSource::from_log(&records, complete, command);
    write(output, evenhand_report::html(rules, &RoundLog::of(&records), &source).as_bytes())?;
    print(format_args!("{} of {} rounds\n", output.display(), records.len()))
}

pub(super) fn audit(state: &Path) -> Result<(), CommandFailure> {
    let (store, _copy) = open_or_copy(state)?;
    let audit = store.audit()?;
    if let Some(difference) = audit.difference {
        return Err(CommandFailure::new(Exit::Data, anyhow!("{difference}")));
    }
    print(format_args!("{} rounds agree\n", audit.recomputed))?;
    match audit.chained {
        0 => return Ok(()),
        1 => print("1 further round continues the one before")?,
        rounds => print(format_args!("{rounds} further rounds continue each other"))?,
    }
    print(
        ", and draws, waits and losses agree with the records; without the updates, which are not kept, contributions, \
         standings, odds, verdicts and models cannot be recomputed\n",
    )?;
    match audit.with_digests {
        0 => Ok(()),
        rounds => print(format_args!(
            "digests of the updates are stored for {rounds} of them: who has an update can show that it counted\n"
        )),
    }
}

pub(super) fn backup(state: &Path, to: &Path) -> Result<(), CommandFailure> {
    match open(state)? {
        OpenedState::Store(store) => store.back_up(to)?,
        OpenedState::Running(_) => {
            let to = absolute(to)?;
            control::send(state, &ControlRequest::Backup(to.clone()))?;
            // The coordinator may see other folders under the same names, as a service with a /tmp of its own does.
            if !to.join(FILE).exists() {
                return Err(CommandFailure::new(
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

/// A state folder: opened by this process, or by a running coordinator.
enum OpenedState {
    Store(Store),
    Running(Box<FederationStatus>),
}

fn open(state: &Path) -> Result<OpenedState, CommandFailure> {
    match open_with_retry(state, || Store::open(state)) {
        Ok(store) => Ok(OpenedState::Store(store)),
        Err(StoreError::InUse { folder }) => match control::send(state, &ControlRequest::Status) {
            Ok(status) => Ok(OpenedState::Running(Box::new(status))),
            Err(ControlError::NotRunning(_)) => Err(StoreError::InUse { folder }.into()),
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// Opens a store; retries while another command reads it, but not while a coordinator runs on it.
pub(super) fn open_with_retry(
    state: &Path,
    open: impl Fn() -> Result<Store, StoreError>,
) -> Result<Store, StoreError> {
    let began = Instant::now();
    loop {
        match open() {
            Err(StoreError::InUse { .. })
                if !control::is_running(state) && began.elapsed() < OPEN_TIMEOUT =>
            {
                thread::sleep(OPEN_RETRY);
            }
            opened => return opened,
        }
    }
}

/// The state for reading: the store itself, or a copy of a running coordinator's.
pub(super) fn open_or_copy(state: &Path) -> Result<(Store, Option<StateCopy>), CommandFailure> {
    match open(state)? {
        OpenedState::Store(store) => Ok((store, None)),
        OpenedState::Running(_) => {
            let copy = StateCopy(absolute(state)?.join(format!("copy-{}", std::process::id())));
            control::send(state, &ControlRequest::Backup(copy.0.clone()))?;
            Ok((Store::open(&copy.0)?, Some(copy)))
        }
    }
}

/// A copy of the state that is removed after use. It is in the state folder: no other folder is certain to be writable by
/// the coordinator, readable by this process and private.
pub(super) struct StateCopy(PathBuf);

impl Drop for StateCopy {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(%error, "cannot remove {}", self.0.display());
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, CommandFailure> {
    std::path::absolute(path).map_err(|error| CommandFailure::new(Exit::Usage, error))
}

/// Writes a model, which is the reward, or a report, which names the nodes: for their owner alone.
fn write(path: &Path, bytes: &[u8]) -> Result<(), CommandFailure> {
    AtomicFile::new(path).owner_only().write(bytes).map_err(|error| {
        CommandFailure::new(Exit::Software, anyhow!("cannot write {}: {error}", path.display()))
    })
}
