//! The coordinator as a program: data on stdout, logs on stderr, exit codes as in `sysexits.h`.

mod operate;
mod run;

use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use evenhand_coordinator::config::{self, Config};
use evenhand_coordinator::control::ControlError;
use evenhand_coordinator::shell::ShellError;
use evenhand_coordinator::store::StoreError;
use evenhand_federation as federation;
use evenhand_protocol::exit::{self, Exit};
use evenhand_protocol::identity::NodeId;

/// Coordinates a federation of nodes that learn one model together, fairly.
///
/// STATE is the folder named by state.folder in the configuration. Whatever reads it works on a coordinator that runs and
/// on one that does not.
///
/// Exit codes: 0 done, 64 wrong command line, 65 bad data or state, or an audit that found a difference, 69 broker
/// unreachable or no coordinator running, 70 defect or output that cannot be written, 75 the state is in use by
/// another process, 78 wrong configuration, 130 interrupted. Logs go to stderr; RUST_LOG chooses how much.
#[derive(Debug, Parser)]
#[command(name = "evenhand-coordinator", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the federation until it is finished; one that was stopped or killed goes on.
    Run {
        /// The configuration; without it, the defaults.
        #[arg(long)]
        config: Option<PathBuf>,
    },
    /// Show how the federation stands.
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
    /// Write the report of the federation so far: one HTML file.
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
        /// Where to; it must not hold a federation.
        to: PathBuf,
    },
    /// Begin with the nodes that are there, without waiting for more.
    Begin {
        /// The state folder.
        state: PathBuf,
    },
    /// Open no further rounds; the running one ends as usual.
    Pause {
        /// The state folder.
        state: PathBuf,
    },
    /// Go on after a pause.
    Resume {
        /// The state folder.
        state: PathBuf,
    },
    /// Measure all contributions anew, from the next round on.
    ReExplore {
        /// The state folder.
        state: PathBuf,
    },
    /// Shut a node out for good; its record stays.
    Remove {
        /// The state folder.
        state: PathBuf,
        /// Its name.
        node: NodeId,
    },
    /// End the federation with what was reached.
    Finish {
        /// The state folder.
        state: PathBuf,
    },
    /// Print a node's password on the embedded broker.
    Password {
        /// The configuration, which names broker.secret_file.
        #[arg(long)]
        config: PathBuf,
        /// The node's name.
        node: NodeId,
    },
    /// Say whether a configuration is right.
    CheckConfig {
        /// The configuration.
        #[arg(long)]
        config: PathBuf,
    },
    /// Print the commented default configuration.
    PrintConfig,
    /// Print the version.
    Version,
}

/// A failure, and the code the program ends with.
struct Failure {
    exit: Exit,
    error: anyhow::Error,
}

impl Failure {
    fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into() }
    }
}

impl From<ShellError> for Failure {
    fn from(error: ShellError) -> Self {
        Self::new(error.exit(), error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(error.exit(), error)
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        Self::new(error.exit(), error)
    }
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
            // If the terminal is gone, the exit code still tells.
            let _unseen = error.print();
            return ExitCode::from(u8::from(exit));
        }
    };
    let command = operate::command;
    let result = match arguments.command {
        Command::Run { config } => run::run(config),
        Command::Status { state, json } => operate::status(&state, json),
        Command::Export { state, output } => operate::export(&state, &output),
        Command::Report { state, output } => operate::report(&state, &output),
        Command::Audit { state } => operate::audit(&state),
        Command::Backup { state, to } => operate::backup(&state, &to),
        Command::Begin { state } => command(&state, federation::Command::Begin),
        Command::Pause { state } => command(&state, federation::Command::Pause),
        Command::Resume { state } => command(&state, federation::Command::Resume),
        Command::ReExplore { state } => command(&state, federation::Command::Explore),
        Command::Remove { state, node } => command(&state, federation::Command::Remove(node)),
        Command::Finish { state } => command(&state, federation::Command::Finish),
        Command::Password { config, node } => password(config, &node),
        Command::CheckConfig { config } => {
            load(Some(config)).and_then(|_| print("the configuration is right\n"))
        }
        Command::PrintConfig => print(config::DEFAULT),
        Command::Version => print(concat!("evenhand-coordinator ", env!("CARGO_PKG_VERSION"), "\n")),
    };
    let exit = match result {
        Ok(()) => Exit::Ok,
        Err(Failure { exit, error }) => {
            // Every message says its cause itself; if the terminal is gone, the exit code still tells.
            let _unseen = writeln!(io::stderr(), "evenhand-coordinator: {error}");
            exit
        }
    };
    ExitCode::from(u8::from(exit))
}

fn password(config: PathBuf, node: &NodeId) -> Result<(), Failure> {
    let password = load(Some(config))?.password(node).map_err(|error| Failure::new(Exit::Config, error))?;
    print(format_args!("{password}\n"))
}

fn print(text: impl Display) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match write!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if !exit::is_reader_gone(&error) => {
            Err(Failure::new(Exit::Software, anyhow::anyhow!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

fn load(path: Option<PathBuf>) -> Result<Config, Failure> {
    let config = match &path {
        Some(path) => Config::load(path),
        None => Ok(Config::default()),
    };
    config.map_err(|error| Failure::new(Exit::Config, error))
}
