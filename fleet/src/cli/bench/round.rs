//! `bench round`: time of the coordinator from the last update of a round to the next round's tasks.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenhand_coordinator::shell::{NoPersistence, Persistence};
use evenhand_coordinator::store::{self, Store, StorePersistence};
use evenhand_federation::{Command, Effect, Federation, FederationConfig, InitialModel, Input, Rules, Tick};
use evenhand_models::{LoadOptions, Model, shipped};
use evenhand_protocol::chunk::{PAYLOAD_BYTES_MAX, Transfer};
use evenhand_protocol::codec::EncodedUpdate;
use evenhand_protocol::envelope;
use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{Answer, Birth, Life, Message, Status, Update};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::Serialize;

use super::BenchError;
use super::print::PrintArgs;
use super::state::StateArgs;
use crate::cli::FleetError;
use crate::sim::SimulationError;

/// Flags of `bench round`
#[derive(Debug, clap::Args)]
pub(crate) struct RoundArgs {
    /// Nodes, all of which answer in every round
    #[arg(long, default_value_t = 30, value_name = "N")]
    nodes: u32,
    /// Rounds to time, all of them exploring: the dearest
    #[arg(long, default_value_t = 60, value_name = "T")]
    rounds: u32,
    #[command(flatten)]
    state: StateArgs,
    /// Seed of the updates
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    print: PrintArgs,
}

/// From the last update in to the next tasks out, in milliseconds.
#[derive(Debug, Serialize)]
struct Overhead {
    nodes: u32,
    parameters: usize,
    rounds: u32,
    durable: TimeSpread,
    in_memory: TimeSpread,
    /// Bytes the state folder grew by in a round.
    bytes_a_round: u64,
}

#[derive(Debug, Serialize)]
struct TimeSpread {
    median_ms: f64,
    p95_ms: f64,
}

/// Times rounds with and without durability.
pub(crate) fn run(args: &RoundArgs, stdout: impl Write) -> Result<(), FleetError> {
    let model =
        Model::load(shipped::ELECTRICITY_RNN, &LoadOptions::default()).map_err(SimulationError::Model)?;
    let folder = args.state.folder()?;
    let in_memory = BenchFederation::new(args, &model)?.measure(args, NoPersistence)?;
    let site = BenchFederation::new(args, &model)?;
    let store = Arc::new(Store::open_or_create(folder.path()).map_err(BenchError::Store)?);
    store.resume(site.federation.clone()).map_err(BenchError::Store)?;
    let durable = site.measure(args, StorePersistence::new(store, 0))?;
    let bytes = std::fs::metadata(folder.path().join(store::FILE)).map_err(BenchError::Io)?.len();
    let overhead = Overhead {
        nodes: args.nodes,
        parameters: model.dim(),
        rounds: args.rounds,
        durable,
        in_memory,
        bytes_a_round: bytes / u64::from(args.rounds),
    };
    args.print.write(&overhead, table, stdout)
}

fn table(overhead: &Overhead) -> String {
    let Overhead { nodes, parameters, rounds, durable, in_memory, bytes_a_round } = overhead;
    format!(
        "{nodes} nodes, {parameters} parameters, {rounds} rounds: from the last update in to the next tasks out\n\
         durable    median {:>8.2} ms   95 % {:>8.2} ms   {} a round on disk\n\
         in memory  median {:>8.2} ms   95 % {:>8.2} ms\n",
        durable.median_ms,
        durable.p95_ms,
        evenhand_report::bytes_text(*bytes_a_round),
        in_memory.median_ms,
        in_memory.p95_ms
    )
}

/// A federation with invented updates.
struct BenchFederation {
    /// Absent only within a step.
    federation: Federation,
    nodes: Vec<NodeId>,
    dim: usize,
    now: Tick,
}

impl BenchFederation {
    fn new(args: &RoundArgs, model: &Model) -> Result<Self, SimulationError> {
        let mut settings = FederationConfig::default();
        settings.federation.policy = evenhand_federation::Policy::Paper;
        settings.federation.nodes_min = args.nodes.max(1);
        settings.federation.rounds = u32::MAX;
        settings.exploring.tested_nodes = settings.exploring.tested_nodes.min(args.nodes.max(1));
        settings.exploiting.k = settings.exploiting.k.min(args.nodes.max(1));
        // A window that no round reaches keeps it exploring.
        settings.exploring.window = args.rounds + args.nodes + 1;
        let initial_model = InitialModel {
            graph: Digest(model.digest()),
            onnx: shipped::ELECTRICITY_RNN.into(),
            weights: model.initial_weights().into(),
        };
        let nodes = (0..args.nodes).map(|number| NodeId::new(&format!("node-{number:05}")));
        Ok(Self {
            federation: Federation::new(Rules::new(settings)?, initial_model),
            nodes: nodes.collect::<Result<_, _>>()?,
            dim: model.dim(),
            now: Tick(0),
        })
    }

    /// One step with all its effects but sending.
    fn step(&mut self, input: Input, persistence: &mut impl Persistence) -> Result<usize, SimulationError> {
        self.now = self.now.plus_ms(1);
        let effects = self.federation.step(self.now, input);
        let mut closed = Vec::new();
        let mut packets = 0;
        for effect in effects {
            let message = match effect {
                Effect::Record(round) => {
                    closed.push(Arc::new(*round));
                    continue;
                }
                Effect::Persist(saved) => {
                    persistence
                        .persist(&closed, *saved)
                        .map_err(|error| SimulationError::Defect(error.to_string()))?;
                    continue;
                }
                Effect::Manifest { manifest, .. } => Message::Manifest(manifest),
                Effect::Account { account, .. } => Message::Account(account),
                Effect::Publish { payload, .. } => Message::Order(payload.order()),
            };
            let transfer = Transfer::new(envelope::encode(&message), PAYLOAD_BYTES_MAX);
            packets += transfer.map_or(0, |transfer| transfer.chunks().count());
        }
        Ok(packets)
    }

    fn measure(
        mut self,
        args: &RoundArgs,
        mut persistence: impl Persistence,
    ) -> Result<TimeSpread, SimulationError> {
        let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
        for node in self.nodes.clone() {
            let birth = Birth { graph: None, weights: None, token: None, software: "bench".into() };
            let status = Status { session: 1, life: Life::Born(birth) };
            self.step(Input::Status { node, status }, &mut persistence)?;
        }
        self.step(Input::Command(Command::Begin), &mut persistence)?;
        let mut times = Vec::new();
        while times.len() < args.rounds as usize {
            let round = self.federation.round();
            for (number, node) in self.nodes.clone().into_iter().enumerate() {
                let vector = (0..self.dim).map(|_| rng.random_range(-1.0..1.0)).collect();
                let update = Update {
                    round,
                    samples: 48,
                    loss: 0.5,
                    online_loss: 0.5,
                    online_samples: 48,
                    vector: EncodedUpdate::F32(vector),
                };
                let began = Instant::now();
                self.step(Input::Answer { node, answer: Answer::Update(update) }, &mut persistence)?;
                if number + 1 == self.nodes.len() {
                    times.push(began.elapsed());
                }
            }
        }
        Ok(TimeSpread::of(times))
    }
}

impl TimeSpread {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize].as_secs_f64() * 1e3;
        Self { median_ms: at(0.5), p95_ms: at(0.95) }
    }
}
