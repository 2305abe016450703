//! `bench churn`: many nodes on one broker, some of which disconnect and return in every round.
//!
//! The coordinator is this process, so that its memory can be measured; the nodes are another one, this very program
//! again, which ends when its standard input closes.

mod nodes;

use std::io::Write;
use std::process::Stdio;

use evenhand_coordinator::shell::{ConnectionOptions, Coordinator, TimedRound};
use evenhand_coordinator::store::{Store, StorePersistence};
use evenhand_fairness::{ContributionConfig, Utility};
use evenhand_federation::{Federation, FederationConfig, InitialModel, NodeResponse, Policy, Rules};
use evenhand_link::Broker;
use evenhand_models::{LoadOptions, Model, shipped};
use evenhand_protocol::identity::{Digest, FederationId};
use evenhand_protocol::message::Why;
use serde::Serialize;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::BenchError;
use super::print::PrintArgs;
use super::state::StateArgs;
use crate::cli::FleetError;
use crate::sim::SimulationError;

/// Flags of `bench churn`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ChurnArgs {
    /// The broker, such as mqtt://127.0.0.1:1883; it must take one connection a node
    #[arg(long, value_name = "URL")]
    broker: String,
    /// Nodes
    #[arg(long, default_value_t = 1000, value_name = "N")]
    nodes: u32,
    /// Rounds, the first fifth of them exploring
    #[arg(long, default_value_t = 50, value_name = "T")]
    rounds: u32,
    /// Share of the nodes that dies in each round and returns in the next
    #[arg(long, default_value_t = 0.1, value_name = "SHARE")]
    dying: f64,
    /// A round goes on without those who have not answered by then
    #[arg(long, default_value_t = 30_000, value_name = "MS")]
    deadline_ms: u32,
    #[command(flatten)]
    state: StateArgs,
    /// Seed of who dies, and of the updates
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    print: PrintArgs,
    /// Be the nodes
    #[arg(long, hide = true)]
    as_nodes: bool,
}

/// The figures.
#[derive(Debug, Serialize)]
struct ChurnFigures {
    nodes: u32,
    rounds: u32,
    deadline_ms: u32,
    /// Of all rounds.
    longest_round_ms: u64,
    median_round_ms: u64,
    /// Tasks that were sent, and what became of them.
    asked: u64,
    arrived: u64,
    died: u64,
    missed: u64,
    /// Members that were away when a round's draw was made, summed.
    absent: u64,
    /// The coordinator's resident memory after a fifth of the rounds, and at the end.
    memory_early_bytes: Option<u64>,
    memory_end_bytes: Option<u64>,
}

/// Runs it, and writes the figures to `stdout`.
pub(crate) fn run(args: &ChurnArgs, stdout: impl Write) -> Result<(), FleetError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(SimulationError::Runtime)?;
    if args.as_nodes {
        return Ok(runtime.block_on(nodes::run(args))?);
    }
    let churn = runtime.block_on(coordinate(args))?;
    args.print.write(&churn, table, stdout)
}

fn table(churn: &ChurnFigures) -> String {
    let memory = |bytes: Option<u64>| bytes.map_or("unknown".into(), evenhand_report::bytes_text);
    format!(
        "{} nodes, {} rounds; longest round {} ms, median {} ms, deadline {} ms\n\
         asked {}, arrived {}, died {}, missed {}; away when others were drawn {}\n\
         coordinator's memory: {} after a fifth of the rounds, {} at the end\n",
        churn.nodes,
        churn.rounds,
        churn.longest_round_ms,
        churn.median_round_ms,
        churn.deadline_ms,
        churn.asked,
        churn.arrived,
        churn.died,
        churn.missed,
        churn.absent,
        memory(churn.memory_early_bytes),
        memory(churn.memory_end_bytes)
    )
}

/// A name of its own, so that two runs on one broker do not meet.
fn federation_name(args: &ChurnArgs) -> Result<FederationId, SimulationError> {
    Ok(FederationId::new(&format!("churn-{}-{}", args.nodes, args.seed))?)
}

fn federation(args: &ChurnArgs) -> Result<Federation, SimulationError> {
    let model = Model::load(shipped::ELECTRICITY_RNN, &LoadOptions::default())?;
    let mut settings = FederationConfig {
        contribution: ContributionConfig { utility: Utility::InnerProduct, ..Default::default() },
        ..Default::default()
    };
    settings.federation.policy = Policy::Paper;
    settings.federation.name = federation_name(args)?;
    settings.federation.seed = args.seed;
    settings.federation.rounds = args.rounds;
    settings.federation.nodes_min = args.nodes;
    settings.federation.round_deadline_ms = args.deadline_ms;
    settings.exploring.rounds_max = args.rounds.div_ceil(5);
    settings.exploring.tested_nodes = settings.exploring.tested_nodes.min(args.nodes);
    settings.exploiting.k = args.nodes.div_ceil(10);
    settings.training.learning_rate = 1e-3;
    let initial_model = InitialModel {
        graph: Digest(model.digest()),
        onnx: shipped::ELECTRICITY_RNN.into(),
        weights: model.initial_weights().into(),
    };
    Ok(Federation::new(Rules::new(settings)?, initial_model))
}

async fn coordinate(args: &ChurnArgs) -> Result<ChurnFigures, FleetError> {
    let folder = args.state.folder()?;
    let store = std::sync::Arc::new(Store::open_or_create(folder.path()).map_err(BenchError::Store)?);
    let federation = store.resume(federation(args)?).map_err(BenchError::Store)?;
    let broker = Broker::parse(&args.broker).map_err(SimulationError::Broker)?;
    let coordinator = Coordinator::connect(ConnectionOptions::new(broker), federation).await;
    let coordinator = coordinator.map_err(SimulationError::Coordinator)?;
    let coordinator = coordinator.with_persistence(StorePersistence::new(store, 10));
    let (reports, rounds) = mpsc::unbounded_channel();
    let mut nodes = start_nodes(args).map_err(BenchError::Io)?;
    // Waiting closes the nodes' standard input, and so ends them, unless it is held here.
    let stdin = nodes.stdin.take();
    let counting = tokio::spawn(count(rounds, args.clone()));
    let running = coordinator.run(reports);
    tokio::pin!(running);
    let outcome = tokio::select! {
        outcome = &mut running => {
            // They receive the end, clear their retained messages, and leave.
            let _ended = nodes.wait().await;
            outcome
        }
        ended = nodes.wait() => match ended {
            Ok(status) if status.success() => running.await,
            Ok(status) => return Err(BenchError::Refused(format!("the nodes ended early: {status}")).into()),
            Err(error) => return Err(BenchError::Io(error).into()),
        },
    };
    drop(stdin);
    if let Some(cause) = outcome.map_err(SimulationError::Coordinator)?.federation.failure() {
        return Err(SimulationError::Failed(cause.clone()).into());
    }
    Ok(counting.await.map_err(|panic| SimulationError::Defect(panic.to_string()))?)
}

fn start_nodes(args: &ChurnArgs) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["bench", "churn", "--as-nodes", "--broker", &args.broker])
        .args(["--nodes", &args.nodes.to_string(), "--rounds", &args.rounds.to_string()])
        .args(["--dying", &args.dying.to_string(), "--seed", &args.seed.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}

async fn count(mut rounds: mpsc::UnboundedReceiver<TimedRound>, args: ChurnArgs) -> ChurnFigures {
    let mut churn = ChurnFigures {
        nodes: args.nodes,
        rounds: 0,
        deadline_ms: args.deadline_ms,
        longest_round_ms: 0,
        median_round_ms: 0,
        asked: 0,
        arrived: 0,
        died: 0,
        missed: 0,
        absent: 0,
        memory_early_bytes: None,
        memory_end_bytes: None,
    };
    let mut times = Vec::new();
    while let Some(round) = rounds.recv().await {
        let record = &round.evidence.round;
        times.push(record.closed.ms_since(record.opened));
        churn.rounds = record.round;
        churn.asked += record.asked().count() as u64;
        for node in &record.nodes {
            churn.absent += u64::from(node.why == Why::Absent);
            churn.arrived += u64::from(matches!(node.response, NodeResponse::Arrived { .. }));
            churn.died += u64::from(node.response == NodeResponse::Disconnected);
            churn.missed += u64::from(node.response == NodeResponse::Missed);
        }
        if record.round == args.rounds.div_ceil(5) {
            churn.memory_early_bytes = resident_bytes();
        }
    }
    times.sort_unstable();
    churn.longest_round_ms = times.last().copied().unwrap_or(0);
    churn.median_round_ms = times.get(times.len() / 2).copied().unwrap_or(0);
    churn.memory_end_bytes = resident_bytes();
    churn
}

/// Resident memory of this process, where the system reports it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
