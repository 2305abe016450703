//! A node whose source is an environment: it acts with the model it holds, and learns while it acts.
//!
//! An order to train lets the agent make some thousand decisions from the received weights on and learn meanwhile; the
//! update is θ_old − θ_new. The rows that a node is measured by are a sample of what it saw: a state, the action taken, and
//! the discounted sum of the rewards it observed next. They depend on no model, so that reference gradients can be taken on
//! them; noise on rewards or states is in them as in what the agent learns from.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenhand_agents::{AgentError, DqnAgent};
use evenhand_node::core::{Trained, TrainingJob};
use evenhand_node::reading::{InputBatch, LabelledRow, RowTarget};
use evenhand_node::source::{LocalTraining, Source, SourceError};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Rewards that enter the sum of a row.
const RETURN_STEPS: usize = 20;
/// Decisions without learning of a node that is measured and was not drawn.
const OBSERVED_DECISIONS: u64 = 250;

/// How an agent takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentPlan {
    /// Decisions in a round.
    pub decisions: u64,
    /// Rows a round, from which reference gradients are computed; a policy that measures updates needs one only.
    pub rows: usize,
    /// Seed of the choice of rows.
    pub seed: u64,
}

/// What others see of an agent.
#[derive(Debug, Default)]
pub struct AgentView {
    /// Decisions so far.
    pub decisions: u64,
    /// Gradient steps so far.
    pub gradient_steps: u64,
    /// Mean score of its newest episodes.
    pub mean_score: Option<f64>,
    /// Probability of a random action.
    pub exploration: f64,
    /// A sentence about its environment, to be shown once.
    pub notice: Option<String>,
    /// Why it cannot go on.
    pub failure: Option<AgentError>,
}

/// A view that the node writes and its observer reads.
#[derive(Debug, Clone, Default)]
pub struct SharedView(Arc<Mutex<AgentView>>);

impl SharedView {
    /// The view.
    pub fn lock(&self) -> MutexGuard<'_, AgentView> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An agent as the source of a node.
pub struct AgentNode {
    agent: DqnAgent,
    plan: AgentPlan,
    view: SharedView,
    generator: ChaCha8Rng,
    /// Transitions since rows were last made of them.
    unread: usize,
}

impl AgentNode {
    /// A node of an agent, and the view of it.
    pub fn new(agent: DqnAgent, plan: AgentPlan) -> (Self, SharedView) {
        let view = SharedView::default();
        let generator = ChaCha8Rng::seed_from_u64(plan.seed);
        (Self { agent, plan, view: view.clone(), generator, unread: 0 }, view)
    }

    fn publish(&mut self, failure: Option<AgentError>) {
        let mut view = self.view.lock();
        view.decisions = self.agent.decisions();
        view.gradient_steps = self.agent.gradient_steps();
        view.mean_score = self.agent.mean_score();
        view.exploration = self.agent.exploration();
        view.notice = self.agent.notice().or(view.notice.take());
        view.failure = failure.or(view.failure.take());
    }

    /// Sees to it that there is something to read.
    fn observe(&mut self) -> Result<(), AgentError> {
        if self.agent.memory().is_empty() {
            self.agent.fill_memory()?;
            self.unread = self.agent.memory().len();
        }
        if self.unread == 0 && self.plan.rows > 1 {
            self.agent.explore(OBSERVED_DECISIONS)?;
            self.unread = OBSERVED_DECISIONS as usize;
        }
        Ok(())
    }

    fn row(&self, age: usize) -> Option<LabelledRow> {
        let memory = self.agent.memory();
        let first = memory.experience(age)?;
        let (mut value, mut factor) = (0.0, 1.0f32);
        for later in age..age + RETURN_STEPS {
            let Some(seen) = memory.experience(later) else { break };
            value += factor * f32::from(seen.reward);
            factor *= self.agent.settings().discount;
            if seen.end.is_over() {
                break;
            }
        }
        let target = RowTarget::Chosen { column: first.action as u32, value };
        Some(LabelledRow { features: memory.state(age), target })
    }
}

impl Source for AgentNode {
    fn read(&mut self, _count: usize) -> Result<InputBatch, SourceError> {
        if let Err(failure) = self.observe() {
            self.publish(Some(failure));
            return Ok(InputBatch::Rows(Vec::new()));
        }
        let len = self.agent.memory().len();
        // The last transitions have not yet had all their rewards.
        let newest = len.saturating_sub(RETURN_STEPS).max(1);
        let oldest = len.saturating_sub(self.unread.max(RETURN_STEPS + 1)).min(newest - 1);
        self.unread = 0;
        let ages: Vec<usize> =
            (0..self.plan.rows).map(|_| self.generator.random_range(oldest..newest)).collect();
        Ok(InputBatch::Rows(ages.into_iter().filter_map(|age| self.row(age)).collect()))
    }

    fn local_training(&mut self) -> Option<&mut dyn LocalTraining> {
        Some(self)
    }
}

impl LocalTraining for AgentNode {
    fn train(&mut self, job: &TrainingJob) -> Option<Trained> {
        match self.agent.train(&job.weights, self.plan.decisions, || false) {
            Ok(trained) => {
                self.unread = self.unread.saturating_add(self.plan.decisions as usize);
                self.publish(None);
                let trained = trained?;
                Some(Trained { loss: trained.loss, online_loss: None, vector: trained.update })
            }
            Err(failure) => {
                self.publish(Some(failure));
                None
            }
        }
    }
}
