//! The federation of a trial with agents.

use std::sync::Arc;

use evenhand_agents::DqnAgent;
use evenhand_fairness::ContributionConfig;
use evenhand_federation::strategy::Strategy;
use evenhand_federation::{AdmissionConfig, FederationConfig, InitialModel, Policy, Rules};
use evenhand_models::Model;
use evenhand_node::config::PrivacyConfig;
use evenhand_node::core;
use evenhand_node::privacy::NoiseSeed;
use evenhand_node::window::{RowsConfig, WindowSettings};
use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::LossKind;

use super::engine::GameSource;
use super::setup::GameSetup;
use crate::baseline::{self, Oracle, QFfl};
use crate::data::AsPublished;
use crate::experiment::federation::federation_name;
use crate::experiment::trial::node_name;
use crate::experiment::variant::Variant;
use crate::scenario::{NodeBehaviour, SeededBehaviour};
use crate::sim::agent_node::{AgentNode, AgentPlan, SharedView};
use crate::sim::memory::{NodeSpec, Simulation, WireMode};
use crate::sim::{SimulationError, simulated_federation};

/// Coalitions of each size that a contribution is estimated from; with five nodes there are fewer.
const SAMPLES: usize = 256;
/// Rounds begin so far apart that joins are known before the next.
const ROUND_INTERVAL_MS: u32 = 200;
/// Rows a round, on which reference gradients are taken.
const ROWS: usize = 128;
/// Distances between the seeds of agents, and of the environments of the evaluator.
const AGENT_SEEDS: u64 = 1_000_003;

impl GameSetup {
    /// The rules of the trial's federation.
    pub(super) fn rules(&self) -> Result<Rules, SimulationError> {
        let as_code = self.as_published == AsPublished::Code;
        let mut config: FederationConfig = simulated_federation(self.nodes);
        config.federation.policy = self.variant.policy();
        if config.federation.policy == Policy::Continuous {
            config.admission = AdmissionConfig::default();
        }
        config.federation.name = federation_name()?;
        config.federation.seed = self.seed;
        config.federation.rounds = self.rounds;
        config.federation.round_interval_ms = ROUND_INTERVAL_MS;
        // An update is θ_old − θ_new after local training, and the model becomes the mean of the nodes' models.
        config.training.local_epochs = 1;
        config.training.learning_rate = 1.0;
        config.training.loss = LossKind::Huber;
        config.contribution = ContributionConfig { samples: SAMPLES, ..Default::default() };
        config.exploring.rule = self.variant.stop_rule();
        config.exploring.window = self.window as u32;
        config.exploring.tested_nodes = self.nodes as u32;
        config.exploring.alpha = self.alpha;
        config.exploiting.k = self.k as u32;
        config.exploiting.temperature = self.temperature;
        config.exploiting.sampler = self.variant.sampler(as_code);
        Rules::new(config).map_err(SimulationError::Rules)
    }

    fn strategy(&self) -> Result<Box<dyn Strategy>, SimulationError> {
        Ok(match self.variant {
            Variant::QFfl => Box::new(QFfl::with_shares(vec![1.0 / self.nodes as f64; self.nodes])),
            Variant::Oracle => {
                Box::new(Oracle::new(self.values().iter().map(|value| -value).collect(), self.k))
            }
            other => {
                let found = baseline::strategy(other.strategy());
                let defect = || SimulationError::Defect("a variant without a strategy".into());
                (found.ok_or_else(defect)?.create)()
            }
        })
    }

    /// The names of the nodes, in the order of their values.
    pub fn node_names(&self) -> Vec<String> {
        (0..self.nodes).map(|node| node_name(node, self.nodes)).collect()
    }

    /// The federation and its agents before they run, with a view of each agent.
    pub(super) fn simulation(
        &self,
        source: &GameSource,
        model: &Model,
        weights: &Arc<[f32]>,
    ) -> Result<(Simulation, Vec<SharedView>), SimulationError> {
        let (mut nodes, mut views) = (Vec::new(), Vec::new());
        for (node, value) in self.values().into_iter().enumerate() {
            let seed = self.seed.wrapping_mul(AGENT_SEEDS).wrapping_add(node as u64);
            let environment = source.environment(seed).map_err(evenhand_agents::AgentError::from)?;
            let sample = environment.frame_shape().batch_shape(1)[1..].to_vec();
            let settings = self.agent(value, source.settings());
            let noise = self.corruption.noise(value, self.as_published);
            let agent = DqnAgent::new(settings, environment, noise, model, weights, seed)?;
            let rows = if self.variant.policy() == Policy::Continuous { ROWS } else { 1 };
            let (agent, view) = AgentNode::new(agent, AgentPlan { decisions: self.decisions, rows, seed });
            views.push(view);
            nodes.push(NodeSpec {
                attacker: None,
                id: NodeId::new(&node_name(node, self.nodes))?,
                settings: core::NodeSettings {
                    federation: federation_name()?,
                    token: None,
                    software: env!("CARGO_PKG_VERSION").into(),
                    window: WindowSettings::Rows(RowsConfig {
                        shape: sample,
                        history_rows: rows,
                        replay_share: 0.0,
                    }),
                    side_series: Vec::new(),
                    paced_by_rounds: true,
                    forecasts: false,
                    parameters_max: usize::MAX,
                    order_limits: core::OrderLimits { epochs_max: u32::MAX, training_ms_max: u32::MAX },
                    privacy: PrivacyConfig::none(),
                    noise_seed: NoiseSeed::repeatable(self.seed),
                    seed: self.seed,
                },
                source: Box::new(agent),
                readings_a_round: 1,
                behaviour: SeededBehaviour { behaviour: NodeBehaviour::Steady, seed: self.seed, node },
            });
        }
        let simulation = Simulation {
            rules: self.rules()?,
            strategy: self.strategy()?,
            initial_model: InitialModel {
                graph: Digest(model.digest()),
                onnx: source.onnx().into(),
                weights: Arc::clone(weights),
            },
            nodes,
            wire_mode: WireMode::Direct,
        };
        Ok((simulation, views))
    }
}
