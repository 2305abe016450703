//! The recorder of a run.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use evenhand_federation::RoundEvidence;
use evenhand_report::RoundLog;

use super::online::{IssuedModels, OnlineEvaluator, OnlineScore};
use super::progress::RunProgress;
use super::{RecordedRun, RunDescription, RunResult, SimulatedNode, SimulationError};

/// Records every round of a run for its report.
pub struct RunRecorder<W> {
    description: RunDescription,
    nodes: Vec<SimulatedNode>,
    log: RoundLog,
    online: Vec<Vec<OnlineScore>>,
    evaluator: OnlineEvaluator,
    /// The models issued to the nodes drawn in the next round: θ_{t−1}.
    issued: IssuedModels,
    /// By node: the receiver of its rewards, in a negative control.
    receivers: Option<Vec<usize>>,
    p_value: Option<f64>,
    progress: RunProgress<W>,
}

impl<W: Write> RunRecorder<W> {
    /// A recorder for a federation that begins with the weights `initial`.
    pub fn new(
        description: RunDescription,
        nodes: Vec<SimulatedNode>,
        evaluator: OnlineEvaluator,
        initial: Arc<[f32]>,
        progress: RunProgress<W>,
    ) -> Self {
        Self {
            description,
            log: RoundLog::new(nodes.iter().map(|node| node.id.clone()).collect()),
            nodes,
            online: Vec::new(),
            evaluator,
            issued: IssuedModels { latest: initial, node_models: BTreeMap::new() },
            receivers: None,
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
        let mut round = self.log.summary(&closed.round);
        if let (Some(receivers), false) = (&self.receivers, round.exploring) {
            round.drawn.iter_mut().for_each(|node| *node = receivers[*node]);
            round.drawn.sort_unstable();
        }
        let next = IssuedModels { latest: closed.weights.to_shared(), node_models: self.node_models(closed) };
        let issued = std::mem::replace(&mut self.issued, next);
        self.online.push(self.evaluator.round(round.round, &round.drawn, &issued)?);
        self.p_value = round.stop.as_ref().and_then(|stop| stop.p_value).or(self.p_value);
        self.progress.round(&self.description.rules, self.log.nodes(), &round, self.p_value);
        self.log.rounds.push(round);
        Ok(())
    }

    /// The models of single nodes by position, from those by index.
    fn node_models(&self, closed: &RoundEvidence) -> BTreeMap<usize, Arc<[f32]>> {
        let positions = closed.round.nodes.iter().map(|node| self.log.position(node.node.as_str()));
        let models = positions.zip(&closed.node_models);
        models.filter_map(|(position, model)| Some((position?, model.to_shared()))).collect()
    }

    /// Shows what the run is waiting for.
    pub fn waiting(&mut self, what: &str) {
        self.progress.waiting(what);
    }

    /// The run, after its end.
    pub fn finish(mut self, result: RunResult) -> RecordedRun {
        self.progress.finish();
        RecordedRun {
            description: self.description,
            nodes: self.nodes,
            log: self.log,
            online: self.online,
            skills: result.skills,
            watched: None,
            ended: result.ended,
            cost: result.cost,
        }
    }
}
