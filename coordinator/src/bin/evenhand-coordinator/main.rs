//! The program `evenhand-coordinator`: data on stdout, logs on stderr, exit codes as in `sysexits.h`.

mod init;
mod joining;
mod operate;
mod run;

use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Parser, Subcommand};
use evenhand_coordinator::config::{self, CoordinatorConfig};
use evenhand_coordinator::control::ControlError;
use evenhand_coordinator::shell::ShellError;
use evenhand_coordinator::store::StoreError;
use evenhand_federation as federation;
use evenhand_program::exit::Exit;
use evenhand_program::stdout;
use evenhand_protocol::identity::NodeId;

/// Coordinates a federation of nodes that learn one model together, fairly.
///
/// STATE is the folder named by state.folder in the configuration. Commands that read it work with and without a running
/// coordinator.
///
/// Exit codes: 0 success, 64 wrong command line, 65 bad data or state, or an audit that found a difference, 69 broker
/// unreachable or no coordinator running, 70 defect or output that cannot be written, 75 the state is in use by
/// another process, 78 wrong configuration, 130 interrupted. Logs go to stderr; `[log]` sets their level and form.
#[derive(Debug, Parser)]
#[command(name = "evenhand-coordinator", version)]
pub(crate) struct CoordinatorArguments {
    #[command(subcommand)]
    command: CoordinatorCommand,
}

#[derive(Debug, Subcommand)]
enum CoordinatorCommand {
    /// Run the federation until it is finished; one that was stopped or killed resumes.
    Run {
        /// The configuration file; without it, the defaults.
        #[arg(long)]
        config: Option<PathBuf>,
        /// Keep the digests of updates only, as state.keep_updates = false does.
        #[arg(long)]
        no_updates_kept: bool,
    },
    /// Show the status of the federation.
    Status {
        /// The state folder.
        state: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Write the current model as an ONNX file.
    Export {
        /// The state folder.
        state: PathBuf,
        /// The file to write.
        #[arg(long, short)]
        output: PathBuf,
    },
    /// Write the report so far: one HTML file.
    Report {
        /// The state folder.
        state: PathBuf,
        /// The file to write.
        #[arg(long, short)]
        output: PathBuf,
    },
    /// Recompute every contribution, standing, verdict, draw and model from the log, and name the first difference.
    Audit {
        /// The state folder.
        state: PathBuf,
    },
    /// Copy the state, consistently, to another folder.
    Backup {
        /// The state folder.
        state: PathBuf,
        /// The other folder; it must not hold a federation.
        to: PathBuf,
    },
    /// Begin with the nodes that have joined, without waiting for more.
    Begin {
        /// The state folder.
        state: PathBuf,
    },
    /// Open no further rounds; the running one ends as usual.
    Pause {
        /// The state folder.
        state: PathBuf,
    },
    /// Resume after a pause.
    Resume {
        /// The state folder.
        state: PathBuf,
    },
    /// Measure all contributions again, from the next round on.
    ReExplore {
        /// The state folder.
        state: PathBuf,
    },
    /// Remove a node permanently; its record stays.
    Remove {
        /// The state folder.
        state: PathBuf,
        /// The node's name.
        node: NodeId,
    },
    /// End the federation with the current model.
    Finish {
        /// The state folder.
        state: PathBuf,
    },
    /// Print a node's password on the embedded broker.
    Password {
        /// The configuration file, which names broker.secret_file.
        #[arg(long)]
        config: PathBuf,
        /// The node's name.
        node: NodeId,
    },
    /// Write the configuration of a federation of real meters, with its promise; asks for what no flag says.
    Init(init::InitArguments),
    /// Make one-time invitations; nodes join by `evenhand-node join`. The running coordinator accepts them at once.
    Invite(joining::InviteArguments),
    /// Revoke a node: it is sent nothing, and nothing of it counts, until it is invited again.
    Revoke {
        /// The state folder.
        state: PathBuf,
        /// The node's name.
        node: NodeId,
    },
    /// Replace the coordinator's key; nodes learn the new one in a sealed message as long as the old one is accepted.
    RotateKey {
        /// The state folder.
        state: PathBuf,
        /// Days for which the old key is accepted.
        #[arg(long, default_value_t = 30)]
        overlap_days: u32,
    },
    /// Print the coordinator's public key.
    Key {
        /// The state folder.
        state: PathBuf,
    },
    /// List names, invitations, meters and keys.
    Nodes {
        /// The state folder.
        state: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Check a configuration.
    CheckConfig {
        /// The configuration file.
        #[arg(long)]
        config: PathBuf,
    },
    /// Print the commented default configuration.
    PrintConfig,
    /// Print the version.
    Version,
}

/// An error with the exit code of the program.
#[derive(Debug)]
struct CommandFailure {
    exit: Exit,
    error: anyhow::Error,
}

impl CommandFailure {
    fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into() }
    }
}

impl From<ShellError> for CommandFailure {
    fn from(error: ShellError) -> Self {
        Self::new(error.exit(), error)
    }
}

impl From<StoreError> for CommandFailure {
    fn from(error: StoreError) -> Self {
        Self::new(error.exit(), error)
    }
}

impl From<ControlError> for CommandFailure {
    fn from(error: ControlError) -> Self {
        Self::new(error.exit(), error)
    }
}

fn main() -> ExitCode {
    let arguments = match CoordinatorArguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
            // If the terminal is closed, the exit code remains.
            let _unprinted = error.print();
            return exit.into();
        }
    };
    let command = operate::command;
    let result = match arguments.command {
        CoordinatorCommand::Run { config, no_updates_kept } => run::run(config, no_updates_kept),
        CoordinatorCommand::Status { state, json } => operate::status(&state, json),
        CoordinatorCommand::Export { state, output } => operate::export(&state, &output),
        CoordinatorCommand::Report { state, output } => operate::report(&state, &output),
        CoordinatorCommand::Audit { state } => operate::audit(&state),
        CoordinatorCommand::Backup { state, to } => operate::backup(&state, &to),
        CoordinatorCommand::Begin { state } => command(&state, federation::Command::Begin),
        CoordinatorCommand::Pause { state } => command(&state, federation::Command::Pause),
        CoordinatorCommand::Resume { state } => command(&state, federation::Command::Resume),
        CoordinatorCommand::ReExplore { state } => command(&state, federation::Command::Explore),
        CoordinatorCommand::Remove { state, node } => command(&state, federation::Command::Remove(node)),
        CoordinatorCommand::Finish { state } => command(&state, federation::Command::Finish),
        CoordinatorCommand::Password { config, node } => password(config, &node),
        CoordinatorCommand::Init(arguments) => init::init(arguments),
        CoordinatorCommand::Invite(arguments) => joining::invite(arguments),
        CoordinatorCommand::Revoke { state, node } => joining::revoke(&state, node),
        CoordinatorCommand::RotateKey { state, overlap_days } => joining::rotate_key(&state, overlap_days),
        CoordinatorCommand::Key { state } => joining::key(&state),
        CoordinatorCommand::Nodes { state, json } => joining::nodes(&state, json),
        CoordinatorCommand::CheckConfig { config } => {
            load(Some(config)).and_then(|config| {
                config.concerns().iter().for_each(|concern| {
                    // If the terminal is closed, the exit code remains.
                    let _unprinted = writeln!(io::stderr(), "warning: {concern}");
                });
                print("configuration OK\n")
            })
        }
        CoordinatorCommand::PrintConfig => print(config::default_toml()),
        CoordinatorCommand::Version => {
            print(concat!("evenhand-coordinator ", env!("CARGO_PKG_VERSION"), "\n"))
        }
    };
    let exit = match result {
        Ok(()) => Exit::Ok,
        Err(CommandFailure { exit, error }) => {
            // Every message includes its cause; if the terminal is closed, the exit code remains.
            let _unprinted = writeln!(io::stderr(), "evenhand-coordinator: {error}");
            exit
        }
    };
    exit.into()
}

fn password(config: PathBuf, node: &NodeId) -> Result<(), CommandFailure> {
    let password =
        load(Some(config))?.password(node).map_err(|error| CommandFailure::new(Exit::Config, error))?;
    print(format_args!("{password}\n"))
}

fn print(text: impl Display) -> Result<(), CommandFailure> {
    stdout::print(text)
        .map_err(|error| CommandFailure::new(Exit::Software, anyhow!("cannot write to stdout: {error}")))
}

fn load(path: Option<PathBuf>) -> Result<CoordinatorConfig, CommandFailure> {
    let config = match &path {
        Some(path) => CoordinatorConfig::load(path),
        None => Ok(CoordinatorConfig::default()),
    };
    config.map_err(|error| CommandFailure::new(Exit::Config, error))
}
