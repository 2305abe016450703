use std::io;
use std::path::PathBuf;

use evenhand_coordinator::shell::ShellError;
use evenhand_coordinator::store::StoreError;
use evenhand_federation::{FailureCause, RuleError};
use evenhand_link::{BrokerError, LinkError};
use evenhand_models::ModelError;
use evenhand_node::config::ConfigError;
use evenhand_node::shell::NodeError;
use evenhand_protocol::exit::{self, Exit};
use evenhand_protocol::identity::NameError;

use crate::bench::BenchError;
use crate::calc::CalcError;
use crate::data::DataError;
use crate::demo::PlanError;
use crate::experiment::args::SettingError;
use crate::experiment::record::RecordError;
use crate::stream::StreamError;

/// Why a command of the fleet could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// Flags contradict each other.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The report has no place.
    #[error("cannot write the report {}: {cause}; choose another --report PATH", path.display())]
    Report {
        /// Where it should go.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// What was found could not be printed.
    #[error("cannot write to stdout: {0}")]
    Output(#[source] io::Error),
    /// The system gives no threads.
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
    /// The broker's address is none.
    #[error("--broker: {0}")]
    Broker(#[from] BrokerError),
    /// The embedded broker finds no place.
    #[error("cannot listen on this machine: {0}; name a broker with --broker URL")]
    Listen(#[source] io::Error),
    /// A link fails.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The coordinator cannot go on.
    #[error(transparent)]
    Coordinator(#[from] ShellError),
    /// The coordinator's state cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A node cannot go on.
    #[error(transparent)]
    NodeShell(#[from] NodeError),
    /// A node's process does not start, or ended.
    #[error("the process of node {node} is not running ({cause}); try again without --processes")]
    Process {
        /// Whose.
        node: String,
        /// What is known of it.
        cause: String,
    },
    /// Something that cannot happen did.
    #[error("a defect: {0}")]
    Defect(String),
    /// The federation gave up.
    #[error(transparent)]
    Failed(#[from] FailureCause),
    /// Nobody had anything to do before the end was reached.
    #[error("the fleet stands still in round {round}; this is a defect")]
    Stalled {
        /// The round that did not end.
        round: u32,
    },
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The plan does not make a federation.
    #[error(transparent)]
    Rules(#[from] RuleError),
    /// The plan does not make a node.
    #[error(transparent)]
    Node(#[from] ConfigError),
    /// The plan does not make names.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The data set and the experiment do not go together.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A calculator could not answer.
    #[error(transparent)]
    Calc(#[from] CalcError),
    /// A benchmark could not run.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A data set cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A setting makes no experiment.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// All that was asked of a table is left out.
    #[error(
        "nothing is left of the table {table}; ask for other data sets or strategies, or for another table"
    )]
    NothingLeft {
        /// Which.
        table: String,
    },
    /// Results of trials cannot be used, or kept.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl FleetError {
    /// Whether all that failed is that nobody wants our output any more.
    pub fn is_reader_gone(&self) -> bool {
        matches!(self, Self::Output(cause) | Self::Calc(CalcError::Io(cause)) if exit::is_reader_gone(cause))
    }

    /// What kind of failure this is, for the shell.
    pub fn exit(&self) -> Exit {
        match self {
            FleetError::Stream(_)
            | FleetError::Plan(_)
            | FleetError::Report { .. }
            | FleetError::Broker(_)
            | FleetError::Setting(_)
            | FleetError::NothingLeft { .. }
            | FleetError::Record(
                RecordError::Unreadable { .. }
                | RecordError::Malformed { .. }
                | RecordError::OtherFormat { .. }
                | RecordError::OtherData { .. }
                | RecordError::OtherSetup { .. },
            )
            | FleetError::Data(DataError::NoFolder { .. }) => Exit::Usage,
            FleetError::Data(_) => Exit::Data,
            FleetError::Listen(_) => Exit::Broker,
            FleetError::Link(error) => error.exit(),
            FleetError::Coordinator(error) => error.exit(),
            FleetError::Store(error) => error.exit(),
            FleetError::NodeShell(error) => error.exit(),
            FleetError::Calc(error) => error.exit(),
            FleetError::Bench(error) => error.exit(),
            FleetError::Record(RecordError::Unwritable { .. })
            | FleetError::Output(_)
            | FleetError::Runtime(_)
            | FleetError::Process { .. }
            | FleetError::Defect(_)
            | FleetError::Failed(_)
            | FleetError::Stalled { .. }
            | FleetError::Model(_)
            | FleetError::Rules(_)
            | FleetError::Node(_)
            | FleetError::Name(_) => Exit::Software,
        }
    }
}
