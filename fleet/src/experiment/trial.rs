//! One trial: the production coordinator and nodes on one stream of data.

use std::sync::Arc;

use evenhand_federation::{ClosedRound, InitialModel, RoundEvidence, Rules};
use evenhand_models::{LoadOptions, Loss, Model};
use evenhand_node::core;
use evenhand_node::privacy::NoiseSeed;
use evenhand_node::window::{RowsConfig, WindowSettings};
use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::LossKind;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Uniform};

use super::ExperimentError;
use super::federation::federation_name;
use super::setup::Setup;
use super::stop_prediction;
use super::variant::Variant;
use crate::data::{Dataset, SamplePool};
use crate::scenario::{
    Attack, Attacker, FalseReadings, NodeBehaviour, NodeStream, SampleStream, SeededBehaviour, series_config,
};
use crate::sim::memory::{self, NodeSpec, Simulation, WireMode};
use crate::sim::online::{EvaluationBatch, EvaluationSource, OnlineEvaluator};
use crate::sim::progress::{ProgressStyle, RunProgress};
use crate::sim::recorder::RunRecorder;
use crate::sim::{Interrupt, RecordedRun, RunDescription, SimulatedNode, SimulationError};

/// Nodes of a trial that are not honest.
#[derive(Debug, Clone, Default)]
pub struct Crew {
    /// Nodes that attack.
    pub attackers: Vec<(usize, Attack)>,
    /// Further names under which nodes take part.
    pub names: Vec<FurtherName>,
    /// A node that takes part until this round, under the name it began with.
    pub leaves: Option<(usize, u32)>,
    /// A node whose readings are not true.
    pub pretends: Option<(usize, FalseReadings)>,
    /// A node that contributes nothing while exploring goes on after this round.
    pub stops_exploring: Option<(usize, u32)>,
    /// Nodes that contribute late in exploring.
    pub attendance: Option<LateAttendance>,
}

/// The number of nodes that contribute after some round of exploring; others are chosen in each round.
#[derive(Debug, Clone, Copy)]
pub struct LateAttendance {
    /// The last round in which all contribute.
    pub after: u32,
    /// How many contribute from then on.
    pub chosen: usize,
}

/// One more name of a node, with the same data.
#[derive(Debug, Clone, Copy)]
pub struct FurtherName {
    /// The node.
    pub of: usize,
    /// The first round in which the name takes part.
    pub from: u32,
    /// The first round in which it does not any more; none if it stays.
    pub until: Option<u32>,
    /// What is sent under this name instead of honest work.
    pub attack: Option<Attack>,
}

/// Runs a trial on the pool that its seed chose; `on_round` is called with every closed round.
pub fn run(
    setup: &Setup,
    pool: &Arc<SamplePool>,
    interrupt: &Interrupt,
    on_round: &mut dyn FnMut(&ClosedRound),
) -> Result<RecordedRun, ExperimentError> {
    let Some(known) = setup.foreknown() else {
        let run = run_crew(setup, pool, &Crew::default(), interrupt, on_round)?;
        return Ok(RecordedRun { watched: stop_prediction::best(&run), ..run });
    };
    let known = run_crew(&known, pool, &Crew::default(), interrupt, &mut |_| {})?;
    let run = run_crew(setup, pool, &setup.forewarned(&known), interrupt, on_round)?;
    Ok(RecordedRun { watched: stop_prediction::best(&known), ..run })
}

/// The same with nodes that are not honest.
pub fn run_crew(
    setup: &Setup,
    pool: &Arc<SamplePool>,
    crew: &Crew,
    interrupt: &Interrupt,
    on_round: &mut dyn FnMut(&ClosedRound),
) -> Result<RecordedRun, ExperimentError> {
    let stream = Arc::new(SampleStream::new(Arc::clone(pool), &setup.scenario())?);
    let (_, onnx) = setup.dataset.model(setup.as_published);
    let model = Model::load(onnx, &LoadOptions::default()).map_err(SimulationError::Model)?;
    let weights: Arc<[f32]> = initial_weights(setup.dataset, &model, setup.seed).into();
    let mut members = members(setup, &stream);
    for (number, FurtherName { of, .. }) in crew.names.iter().enumerate() {
        let id = format!("{}-again-{number:03}", members[*of].id);
        members.push(SimulatedNode { id, zeta: members[*of].zeta });
    }
    let mut config = setup.federation()?;
    let founders = members.len() - crew.names.iter().filter(|name| name.from > 1).count();
    (config.federation.nodes_min, config.federation.nodes_max) = (founders as u32, members.len() as u32);
    let rules = Rules::new(config).map_err(SimulationError::Rules)?;
    let nodes = members.iter().enumerate().map(|(node, member)| {
        let name = node.checked_sub(setup.nodes).map(|further| crew.names[further]);
        let attacks =
            crew.attackers.iter().filter(|(attacker, _)| *attacker == node).map(|(_, attack)| *attack);
        let attack = attacks.chain(name.and_then(|name| name.attack)).next();
        let pretended = crew.pretends.filter(|(liar, _)| *liar == node).map(|(_, readings)| readings);
        let mut spec = node_spec(setup, &stream, name.map_or(node, |name| name.of), member, pretended)?;
        spec.attacker = attack.map(|attack| Attacker::new(attack, setup.seed, node));
        let leaves = crew.leaves.filter(|(leaving, _)| *leaving == node).map(|(_, until)| (1, Some(until)));
        let visits = leaves.or(name.map(|name| (name.from, name.until)));
        if let Some((from, until)) = visits.filter(|visits| *visits != (1, None)) {
            spec.behaviour.behaviour = NodeBehaviour::Visits { from, until };
        }
        if let Some((_, after)) = crew.stops_exploring.filter(|(best, _)| *best == node) {
            spec.behaviour.behaviour = NodeBehaviour::StopsExploring { after };
        }
        if let Some(LateAttendance { after, chosen }) = crew.attendance {
            spec.behaviour.behaviour = NodeBehaviour::Attends { after, chosen, nodes: setup.nodes };
        }
        Ok(spec)
    });
    let simulation = Simulation {
        rules: rules.clone(),
        strategy: setup.strategy(&stream, &model, loss(setup.dataset))?,
        initial_model: InitialModel {
            graph: Digest(model.digest()),
            onnx: onnx.into(),
            weights: Arc::clone(&weights),
        },
        nodes: nodes.collect::<Result<_, SimulationError>>()?,
        wire_mode: WireMode::Direct,
    };
    let ahead = StreamEvaluation { stream, next: 1, samples_max: setup.evaluation_samples, seed: setup.seed };
    let loss = loss(setup.dataset);
    let evaluator = OnlineEvaluator::new(model, loss, members.len(), Arc::clone(&weights), Box::new(ahead));
    let progress = RunProgress::new(std::io::sink(), ProgressStyle::Silent);
    let description = RunDescription {
        rules,
        strategy: setup.variant.name(),
        transport: "memory".into(),
        command: String::new(),
    };
    let mut recorder = RunRecorder::new(description, members, evaluator, weights, progress);
    if setup.shuffled {
        recorder = recorder.with_shuffled_rewards(shuffled_receivers(setup.nodes, setup.seed));
    }
    let mut record = |closed: &RoundEvidence, _: f64| {
        recorder.round(closed)?;
        on_round(&closed.round);
        Ok(())
    };
    let result = memory::simulate(simulation, interrupt, &mut record)?;
    Ok(recorder.finish(result))
}

/// A random permutation without fixed points: every node is followed by another in a ring.
fn shuffled_receivers(nodes: usize, seed: u64) -> Vec<usize> {
    let mut ring: Vec<usize> = (0..nodes).collect();
    ring.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let mut receivers = vec![0; nodes];
    for (place, node) in ring.iter().enumerate() {
        receivers[*node] = ring[(place + 1) % nodes];
    }
    receivers
}

/// The members, the cleanest first; names in the order of ζ, with which columns are numbered too.
fn members(setup: &Setup, stream: &SampleStream) -> Vec<SimulatedNode> {
    let member =
        |(node, zeta): (usize, &f64)| SimulatedNode { id: node_name(node, setup.nodes), zeta: *zeta };
    stream.nominal_zetas().iter().enumerate().map(member).collect()
}

/// The name of a node of a trial: counted from 1, all of one width.
pub(super) fn node_name(node: usize, nodes: usize) -> String {
    let width = nodes.to_string().len();
    format!("node-{:0width$}", node + 1)
}

fn node_spec(
    setup: &Setup,
    stream: &Arc<SampleStream>,
    node: usize,
    member: &SimulatedNode,
    pretended: Option<FalseReadings>,
) -> Result<NodeSpec, SimulationError> {
    let window = if stream.is_read() {
        WindowSettings::Series(series_config())
    } else {
        WindowSettings::Rows(RowsConfig {
            shape: stream.shape().to_vec(),
            // Only the latest batch counts, however long a node was not asked.
            history_rows: stream.batch(node),
            replay_share: 0.0,
        })
    };
    // Alone there is no one to withhold an update from, or to be away from.
    let behaviour = match setup.variant {
        Variant::Standalone => NodeBehaviour::Steady,
        _ => stream.behaviour(node),
    };
    Ok(NodeSpec {
        attacker: None,
        id: NodeId::new(&member.id)?,
        settings: core::NodeSettings {
            federation: federation_name()?,
            token: None,
            software: env!("CARGO_PKG_VERSION").into(),
            window,
            side_series: Vec::new(),
            paced_by_rounds: true,
            forecasts: false,
            parameters_max: usize::MAX,
            order_limits: core::OrderLimits { epochs_max: u32::MAX, training_ms_max: u32::MAX },
            privacy: setup.privacy(stream.is_read(), stream.passes()),
            noise_seed: NoiseSeed::repeatable(setup.seed.wrapping_mul(1_000_003).wrapping_add(node as u64)),
            seed: setup.seed,
        },
        source: Box::new(NodeStream::new(Arc::clone(stream), node).pretending(pretended)),
        readings_a_round: 1,
        behaviour: SeededBehaviour { behaviour, seed: setup.seed, node },
    })
}

/// The loss that a data set is learned by.
pub(super) fn loss(dataset: Dataset) -> Loss {
    match dataset.loss() {
        LossKind::Mse => Loss::Mse,
        LossKind::CrossEntropy => Loss::CrossEntropy,
        LossKind::Nll => Loss::Nll,
        LossKind::Huber => Loss::Huber,
        LossKind::Pinball => Loss::Pinball,
    }
}

/// θ₀ of a trial: each tensor uniform within the bounds of the shipped one, which is how PyTorch begins; of the product's
/// default model, the shipped one.
pub(super) fn initial_weights(dataset: Dataset, model: &Model, seed: u64) -> Vec<f32> {
    if dataset == Dataset::DayAhead {
        return model.initial_weights();
    }
    uniform_weights(model, seed)
}

/// Weights uniform within the bounds of each tensor of the shipped model.
pub(super) fn uniform_weights(model: &Model, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let shipped = model.initial_weights();
    let mut weights = Vec::with_capacity(shipped.len());
    for parameter in model.parameters() {
        let values = &shipped[parameter.offset..parameter.offset + parameter.len()];
        let bound = values.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        match Uniform::new_inclusive(-bound, bound) {
            Ok(uniform) => weights.extend(uniform.sample_iter(&mut rng).take(values.len())),
            Err(_) => weights.extend_from_slice(values),
        }
    }
    weights
}

/// The clean samples of a stream, round by round.
struct StreamEvaluation {
    stream: Arc<SampleStream>,
    next: u32,
    /// Samples, at most; 0 for all.
    samples_max: usize,
    seed: u64,
}

impl EvaluationSource for StreamEvaluation {
    fn next(&mut self) -> Option<EvaluationBatch> {
        if self.next > self.stream.rounds() {
            return None;
        }
        let clean = self.stream.clean(self.next);
        let scales = clean.scales.iter().map(|(mean, deviation)| (f64::from(*mean), f64::from(*deviation)));
        let all = EvaluationBatch { batch: clean.batch, scales: scales.collect() };
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.next.into());
        self.next += 1;
        Some(match self.samples_max {
            0 => all,
            most => all.thinned(most, &mut rng),
        })
    }
}
