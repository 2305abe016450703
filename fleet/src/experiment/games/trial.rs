//! One trial: the production coordinator and nodes that act in a game.

use std::sync::Arc;

use evenhand_agents::{DqnSettings, Player};
use evenhand_fairness::measures;
use evenhand_federation::RoundEvidence;
use evenhand_federation::strategy::Participation;
use evenhand_models::Model;

use super::engine::GameSource;
use super::picture::GamePicture;
use super::record::GameRecord;
use super::setup::GameSetup;
use crate::experiment::ExperimentError;
use crate::experiment::variant::Variant;
use crate::sim::agent_node::SharedView;
use crate::sim::{Interrupt, RunEnd, SimulationError, memory};

/// ε of the episodes by which a model is scored, as published.
const SCORED_EXPLORATION: f64 = 0.02;
/// Decisions of such an episode, at most.
const SCORED_DECISIONS_MAX: u32 = 1_000;
/// Frames of the game that are kept of a trial.
const FILM_FRAMES: usize = 160;
/// The evaluator's games have seeds of their own.
const EVALUATOR_SEED: u64 = 0x5c03;

/// A round as it is shown while a trial runs.
#[derive(Debug, Clone, PartialEq)]
pub struct GameRound {
    /// Its number.
    pub round: u32,
    /// Nodes that received the model in it.
    pub drawn: Vec<usize>,
    /// Standings after it.
    pub standings: Vec<f64>,
    /// Score of the model that each node holds.
    pub scores: Vec<f64>,
    /// Rounds since each node last received the model.
    pub staleness: Vec<u32>,
    /// A sentence about an environment, to be shown once.
    pub notice: Option<String>,
}

/// A callback for every closed round, with the models that the nodes hold.
pub type OnGameRound<'a> = dyn FnMut(&GameRound, &[Arc<[f32]>]) + 'a;

/// Runs a trial; `on_round` is called with every closed round. None if it was interrupted.
pub fn run(
    setup: &GameSetup,
    source: &GameSource,
    interrupt: &Interrupt,
    on_round: &mut OnGameRound<'_>,
) -> Result<Option<GameRecord>, ExperimentError> {
    let model = source.model()?;
    let weights = initial_weights(&model, setup.seed);
    let (simulation, views) = setup.simulation(source, &model, &weights)?;
    let everybody = simulation.strategy.participation() == Participation::Everybody;
    let mut evaluator = GameEvaluator::new(setup, source, &model, weights, views, everybody)?;
    let result = memory::simulate(simulation, interrupt, &mut |closed, _| {
        let round = evaluator.round(closed)?;
        on_round(&round, &evaluator.held);
        Ok(())
    });
    // Why an agent cannot go on says more than that its federation stands still.
    if let Some(failure) = evaluator.failure() {
        return Err(failure.into());
    }
    match result?.ended {
        RunEnd::Complete => Ok(Some(evaluator.finish()?)),
        RunEnd::Interrupted => Ok(None),
    }
}

/// θ₀ of a trial: uniform within the bounds of the shipped network, by its seed.
fn initial_weights(model: &Model, seed: u64) -> Arc<[f32]> {
    crate::experiment::trial::uniform_weights(model, seed).into()
}

/// Follows which model each node holds, and scores it.
struct GameEvaluator<'a> {
    setup: &'a GameSetup,
    source: &'a GameSource,
    player: Player,
    views: Vec<SharedView>,
    everybody: bool,
    /// θ_{t−1} of each node: what it receives if it is drawn in the next round.
    issued: Vec<Arc<[f32]>>,
    held: Vec<Arc<[f32]>>,
    scores: Vec<f64>,
    /// The first round in which not everybody was drawn.
    drawn_from: Option<u32>,
    rounds: Vec<GameRound>,
}

impl<'a> GameEvaluator<'a> {
    fn new(
        setup: &'a GameSetup,
        source: &'a GameSource,
        model: &Model,
        weights: Arc<[f32]>,
        views: Vec<SharedView>,
        everybody: bool,
    ) -> Result<Self, SimulationError> {
        let agent_error = evenhand_agents::AgentError::from;
        let environment = source.environment(setup.seed ^ EVALUATOR_SEED).map_err(agent_error)?;
        let DqnSettings { episode_decisions_max, .. } = source.settings();
        let decisions_max = match source.engine {
            super::GameEngine::Grid => SCORED_DECISIONS_MAX,
            super::GameEngine::Atari => episode_decisions_max,
        };
        let mut evaluator = Self {
            setup,
            source,
            player: Player::new(environment, model, decisions_max)?,
            views,
            everybody,
            issued: vec![Arc::clone(&weights); setup.nodes],
            held: vec![Arc::clone(&weights); setup.nodes],
            scores: Vec::new(),
            drawn_from: None,
            rounds: Vec::new(),
        };
        let score = evaluator.score(&weights, 0)?;
        evaluator.scores = vec![score; setup.nodes];
        Ok(evaluator)
    }

    fn score(&mut self, weights: &[f32], round: u32) -> Result<f64, SimulationError> {
        let seed = self.setup.seed.wrapping_mul(10_007).wrapping_add(round.into());
        Ok(self.player.mean_score(weights, self.setup.episodes, SCORED_EXPLORATION, seed)?)
    }

    fn round(&mut self, closed: &RoundEvidence) -> Result<GameRound, SimulationError> {
        let record = &closed.round;
        let asked = record.nodes.iter().enumerate().filter(|(_, node)| node.was_asked());
        let drawn: Vec<usize> = asked.map(|(index, _)| index).collect();
        if drawn.len() < self.setup.nodes || self.everybody {
            self.drawn_from.get_or_insert(record.round);
        }
        let mut scored: Vec<(Arc<[f32]>, f64)> = Vec::new();
        for &node in &drawn {
            let weights = Arc::clone(&self.issued[node]);
            let known =
                scored.iter().find(|(other, _)| Arc::ptr_eq(other, &weights)).map(|(_, score)| *score);
            let score = match known {
                Some(score) => score,
                None => self.score(&weights, record.round)?,
            };
            scored.push((Arc::clone(&weights), score));
            self.scores[node] = score;
            self.held[node] = weights;
        }
        let latest = closed.weights.to_shared();
        let own = closed.node_models.iter().map(|model| model.to_shared());
        self.issued = own.chain(std::iter::repeat(latest)).take(self.setup.nodes).collect();
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let round = GameRound {
            round: record.round,
            drawn,
            standings: record.nodes.iter().map(|node| node.standing).collect(),
            scores: self.scores.clone(),
            staleness: record.nodes.iter().map(|node| node.staleness).collect(),
            notice: self.views.iter().find_map(|view| view.lock().notice.take()),
        };
        self.rounds.push(round.clone());
        Ok(round)
    }

    /// Why an agent cannot go on.
    fn failure(&self) -> Option<SimulationError> {
        self.views.iter().find_map(|view| view.lock().failure.take()).map(SimulationError::Agent)
    }

    fn finish(mut self) -> Result<GameRecord, SimulationError> {
        let setup = self.setup;
        let values = setup.values();
        // Where nobody was drawn, all rounds are alike.
        let from = self.drawn_from.unwrap_or(1);
        let exploiting = || self.rounds.iter().filter(|round| round.round >= from);
        let count = exploiting().count();
        let mean = |of: &dyn Fn(&GameRound) -> f64| exploiting().map(of).sum::<f64>() / count.max(1) as f64;
        let scores: Vec<f64> = (0..setup.nodes).map(|node| mean(&|round| round.scores[node])).collect();
        let waits: Vec<f64> =
            (0..setup.nodes).map(|node| mean(&|round| f64::from(round.staleness[node]))).collect();
        let last = self.rounds.last().cloned();
        let standings = last.map_or_else(Vec::new, |round| round.standings);
        let rho = |figures: &[f64]| measures::pearson(figures, &values).filter(|rho| rho.is_finite());
        let has_standings = setup.variant.is_ours() || setup.variant == Variant::Gog;
        let drawn_rho = |figures: &[f64]| self.drawn_from.and_then(|_| rho(figures));
        let (rho_score, rho_staleness) = (drawn_rho(&scores), drawn_rho(&waits));
        let rho_standing = rho(&standings).filter(|_| has_standings);
        let drawn = (0..setup.nodes)
            .map(|node| self.rounds.iter().filter(|round| round.drawn.contains(&node)).count() as u32)
            .collect();
        let curve =
            self.rounds.iter().map(|round| round.scores.iter().sum::<f64>() / setup.nodes as f64).collect();
        let best = Arc::clone(&self.issued[0]);
        let environment = self.source.environment(setup.seed).map_err(evenhand_agents::AgentError::from)?;
        let shape = environment.frame_shape();
        let (frames, film_score) = self.player.filmed(&best, FILM_FRAMES, SCORED_EXPLORATION, setup.seed)?;
        Ok(GameRecord {
            rho_score,
            rho_standing,
            rho_staleness,
            scores,
            waits,
            standings,
            drawn,
            curve,
            node_curves: (0..setup.nodes)
                .map(|node| self.rounds.iter().map(|round| round.scores[node]).collect())
                .collect(),
            drawn_from: self.drawn_from,
            decisions: self.views.iter().map(|view| view.lock().decisions).collect(),
            film: frames.iter().map(|frame| GamePicture::of(frame, shape)).collect(),
            film_score,
            ..GameRecord::of(setup)
        })
    }
}
