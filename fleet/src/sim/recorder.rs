//! The recorder of a run: closed rounds become an outcome.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use evenhand_federation::{RoundEvidence, Rules};
use evenhand_protocol::message::Phase;

use super::online::{IssuedModels, OnlineEvaluator};
use super::progress::RunProgress;
use super::{RunResult, SimulationError};
use crate::outcome::{Member, Outcome, Round, Settings, Stage, Teller};

/// The terms of a run, as its report names them.
#[derive(Debug, Clone)]
pub struct RunDescription {
    /// The federation's rules.
    pub rules: Rules,
    /// The strategy's name.
    pub strategy: String,
    /// The transport's name.
    pub transport: String,
    /// The command that repeats the run.
    pub command: String,
}

impl RunDescription {
    fn settings(&self) -> Settings {
        let rules = &self.rules;
        Settings {
            rounds: rules.federation.rounds,
            seed: rules.federation.seed,
            transport: self.transport.clone(),
            codec: rules.training.codec.to_string(),
            strategy: self.strategy.clone(),
            sampler: rules.exploiting.sampler.to_string(),
            temperature: rules.exploiting.temperature,
            window: rules.exploring.window as usize,
            strictness: rules.exploring.strictness,
            watched: rules.exploring.watched as usize,
            k: rules.exploiting.k as usize,
            command: self.command.clone(),
        }
    }
}

/// Records every round of a run for its report.
pub struct RunRecorder<W> {
    settings: Settings,
    members: Vec<Member>,
    ids: Vec<String>,
    positions: BTreeMap<String, usize>,
    evaluator: OnlineEvaluator,
    /// The models issued to the nodes drawn in the next round: θ_{t−1}.
    issued: IssuedModels,
    /// By node: the receiver of its rewards, in a negative control.
    receivers: Option<Vec<usize>>,
    rounds: Vec<Round>,
    p_value: Option<f64>,
    progress: RunProgress<W>,
}

impl<W: Write> RunRecorder<W> {
    /// A recorder for a federation that begins with the weights `initial`.
    pub fn new(
        description: RunDescription,
        members: Vec<Member>,
        evaluator: OnlineEvaluator,
        initial: Arc<[f32]>,
        progress: RunProgress<W>,
    ) -> Self {
        let ids: Vec<String> = members.iter().map(|member| member.id.clone()).collect();
        let positions = ids.iter().cloned().enumerate().map(|(position, id)| (id, position)).collect();
        Self {
            settings: description.settings(),
            members,
            ids,
            positions,
            evaluator,
            issued: IssuedModels { latest: initial, node_models: BTreeMap::new() },
            receivers: None,
            rounds: Vec::new(),
            p_value: None,
            progress,
        }
    }

    /// A negative control: once nodes are drawn by their standing, the rewards of node i go to node `receivers[i]`.
    pub fn with_shuffled_rewards(mut self, receivers: Vec<usize>) -> Self {
        self.receivers = Some(receivers);
        self
    }

    /// Records a closed round.
    pub fn round(&mut self, closed: &RoundEvidence) -> Result<(), SimulationError> {
        let record = &closed.record;
        let nodes = self.members.len();
        let mut round = Round {
            round: record.round,
            stage: if record.phase == Phase::Exploring { Stage::Exploring } else { Stage::Exploiting },
            drawn: Vec::new(),
            loss: record.loss.unwrap_or(f64::NAN),
            contributions: None,
            standings: vec![0.0; nodes],
            sampling_probabilities: vec![0.0; nodes],
            p_value: record.verdict.as_ref().and_then(|verdict| verdict.p_value),
            online_losses: Vec::new(),
            online_mapes: Vec::new(),
            online_accuracies: Vec::new(),
        };
        for node in &record.nodes {
            let Some(&position) = self.positions.get(node.node.as_str()) else { continue };
            round.standings[position] = node.standing;
            round.sampling_probabilities[position] = node.sampling_probability;
            if let Some(contribution) = node.contribution {
                round.contributions.get_or_insert_with(|| vec![0.0; nodes])[position] = contribution;
            }
            if node.was_asked() {
                round.drawn.push(position);
            }
        }
        if let (Some(receivers), Stage::Exploiting) = (&self.receivers, round.stage) {
            round.drawn.iter_mut().for_each(|node| *node = receivers[*node]);
        }
        round.drawn.sort_unstable();
        let next = IssuedModels { latest: closed.weights.shared(), node_models: self.node_models(closed) };
        let issued = std::mem::replace(&mut self.issued, next);
        let online = self.evaluator.round(round.round, &round.drawn, &issued)?;
        round.online_losses = online.iter().map(|online| online.loss).collect();
        round.online_mapes = online.iter().map(|online| online.mape).collect();
        round.online_accuracies = online.iter().map(|online| online.accuracy).collect();
        self.p_value = round.p_value.or(self.p_value);
        self.progress.round(&self.settings, &self.ids, &round, self.p_value);
        self.rounds.push(round);
        Ok(())
    }

    /// The models of single nodes by position, from those by column.
    fn node_models(&self, closed: &RoundEvidence) -> BTreeMap<usize, Arc<[f32]>> {
        let by_name = closed.record.nodes.iter().zip(&closed.own);
        by_name
            .filter_map(|(node, own)| Some((*self.positions.get(node.node.as_str())?, own.shared())))
            .collect()
    }

    /// Shows what the run is waiting for.
    pub fn waiting(&mut self, what: &str) {
        self.progress.waiting(what);
    }

    /// The outcome of a run that has ended.
    pub fn finish(mut self, result: RunResult) -> Outcome {
        self.progress.finish();
        Outcome {
            settings: self.settings,
            members: self.members,
            rounds: self.rounds,
            ended: result.ended,
            cost: result.cost,
            teller: Teller::Fleet,
        }
    }
}
