//! A deep Q-learning agent (Mnih et al. 2015): acts, remembers and learns.

use std::collections::VecDeque;

use evenhand_models::{Model, ModelError};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::action_values::{ActionValues, NetworkError};
use crate::corruption::ObservationNoise;
use crate::environment::{Environment, EnvironmentError, EpisodeEnd};
use crate::learning_rule::Moments;
use crate::replay_memory::{Experience, ReplayMemory};
use crate::settings::{DqnSettings, TargetNetwork};
use crate::state_stack::StateStack;

/// Episodes whose scores are remembered.
const SCORES_MAX: usize = 100;

/// An agent that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The network and the game do not fit each other.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The environment cannot go on.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The model cannot be run.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// An agent in its environment.
pub struct DqnAgent {
    pub(crate) settings: DqnSettings,
    environment: Box<dyn Environment>,
    noise: ObservationNoise,
    values: ActionValues,
    pub(crate) weights: Vec<f32>,
    pub(crate) target: Vec<f32>,
    pub(crate) moments: Moments,
    pub(crate) memory: ReplayMemory,
    pub(crate) generator: ChaCha8Rng,
    pub(crate) decisions: u64,
    /// Scores of the newest episodes that ended.
    pub(crate) scores: VecDeque<f64>,
    pub(crate) episodes: u64,
    episode: Option<Episode>,
    stack: StateStack,
    frame: Vec<u8>,
    state: Vec<f32>,
}

/// An episode under way.
#[derive(Debug, Clone, Copy)]
struct Episode {
    score: f64,
    decisions: u32,
}

/// What came of local training: θ_old − θ_new, and the mean loss of its gradient steps.
#[derive(Debug, Clone, PartialEq)]
pub struct LearningOutcome {
    /// θ_old − θ_new.
    pub update: Vec<f32>,
    /// Mean loss; 0 if there was no gradient step.
    pub loss: f32,
}

impl DqnAgent {
    /// An agent that knows nothing yet and begins with these weights.
    pub fn new(
        settings: DqnSettings,
        environment: Box<dyn Environment>,
        noise: ObservationNoise,
        model: &Model,
        weights: &[f32],
        seed: u64,
    ) -> Result<Self, AgentError> {
        let shape = environment.frame_shape();
        // A memory that is smaller than that would never be full enough.
        let settings = DqnSettings { replay_start: settings.replay_start.min(settings.memory), ..settings };
        Ok(Self {
            values: ActionValues::new(model, weights, shape, environment.actions())?,
            settings,
            noise,
            weights: weights.to_vec(),
            target: weights.to_vec(),
            moments: Moments::default(),
            memory: ReplayMemory::new(shape, settings.memory),
            generator: ChaCha8Rng::seed_from_u64(seed),
            decisions: 0,
            scores: VecDeque::new(),
            episodes: 0,
            episode: None,
            stack: StateStack::new(shape),
            frame: vec![0; shape.bytes()],
            state: Vec::new(),
            environment,
        })
    }

    /// Its settings.
    pub fn settings(&self) -> &DqnSettings {
        &self.settings
    }

    /// Its weights.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Decisions so far.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// Gradient steps so far.
    pub fn gradient_steps(&self) -> u64 {
        self.moments.steps
    }

    /// Episodes that ended so far.
    pub fn episodes(&self) -> u64 {
        self.episodes
    }

    /// ε of the next decision.
    pub fn exploration(&self) -> f64 {
        self.settings.exploration.at(self.decisions)
    }

    /// Mean score of the newest episodes, a hundred at most, as the game counts; none before the first has ended.
    pub fn mean_score(&self) -> Option<f64> {
        (!self.scores.is_empty()).then(|| self.scores.iter().sum::<f64>() / self.scores.len() as f64)
    }

    /// Its replay memory.
    pub fn memory(&self) -> &ReplayMemory {
        &self.memory
    }

    /// A sentence about something in its environment that was put right since the last call.
    pub fn notice(&mut self) -> Option<String> {
        self.environment.notice()
    }

    /// Replaces the weights; the target network follows.
    pub fn set_weights(&mut self, weights: &[f32]) -> Result<(), AgentError> {
        self.values.set_target(weights)?;
        self.weights.clear();
        self.weights.extend_from_slice(weights);
        self.target.clear();
        self.target.extend_from_slice(weights);
        self.values.set_outdated();
        Ok(())
    }

    /// Local training: some decisions from these weights on, learning meanwhile. None if `is_cancelled` before a decision.
    pub fn train(
        &mut self,
        weights: &[f32],
        decisions: u64,
        mut is_cancelled: impl FnMut() -> bool,
    ) -> Result<Option<LearningOutcome>, AgentError> {
        self.set_weights(weights)?;
        let (mut loss, mut steps) = (0.0, 0u32);
        for _ in 0..decisions {
            if is_cancelled() {
                return Ok(None);
            }
            if let Some(found) = self.live()? {
                loss += f64::from(found);
                steps += 1;
            }
        }
        let update = weights.iter().zip(&self.weights).map(|(old, new)| old - new).collect();
        Ok(Some(LearningOutcome { update, loss: (loss / f64::from(steps.max(1))) as f32 }))
    }

    /// Decisions at random until the memory has enough for the first gradient step.
    pub fn fill_memory(&mut self) -> Result<(), AgentError> {
        while self.memory.len() < self.settings.replay_start {
            self.act(1.0)?;
        }
        Ok(())
    }

    /// One decision, and a gradient step if it is time for one; its loss.
    pub fn live(&mut self) -> Result<Option<f32>, AgentError> {
        self.act(self.exploration())?;
        self.decisions += 1;
        let is_due = self.decisions.is_multiple_of(self.settings.train_every.max(1));
        if is_due && self.memory.len() >= self.settings.replay_start { self.learn() } else { Ok(None) }
    }

    /// Some decisions with the weights as they are, which are remembered but not learned from.
    pub fn explore(&mut self, decisions: u64) -> Result<(), AgentError> {
        for _ in 0..decisions {
            self.act(self.exploration())?;
        }
        Ok(())
    }

    /// One decision.
    fn act(&mut self, exploration: f64) -> Result<(), AgentError> {
        let mut begins = false;
        let mut episode = match self.episode {
            Some(episode) => episode,
            None => {
                self.environment.reset(&mut self.frame)?;
                self.noise.frame(&mut self.frame, &mut self.generator);
                self.stack.begin(&self.frame);
                begins = true;
                Episode { score: 0.0, decisions: 0 }
            }
        };
        let action = if self.generator.random_bool(exploration.clamp(0.0, 1.0)) {
            self.generator.random_range(0..self.environment.actions())
        } else {
            self.stack.write(&mut self.state);
            self.values.best_action(&self.weights, &self.state)?
        };
        // The frame that was seen is remembered before the next one takes its place.
        self.memory.push(&self.frame, begins, Experience { action, reward: 0, end: EpisodeEnd::Continues });
        let step = self.environment.step(action, &mut self.frame)?;
        episode.score += f64::from(step.reward);
        episode.decisions += 1;
        let end = match step.end {
            EpisodeEnd::Continues if episode.decisions >= self.settings.episode_decisions_max => {
                EpisodeEnd::Truncated
            }
            end => end,
        };
        let reward = self.noise.reward(step.reward, &mut self.generator);
        self.memory.conclude(reward, end);
        self.episode = Some(episode).filter(|_| !end.is_over());
        if end.is_over() {
            self.episodes += 1;
            self.scores.push_back(episode.score);
            let surplus = self.scores.len().saturating_sub(SCORES_MAX);
            self.scores.drain(..surplus);
        } else {
            self.noise.frame(&mut self.frame, &mut self.generator);
            self.stack.push(&self.frame);
        }
        Ok(())
    }

    /// One gradient step; its loss, or none where the memory has too little.
    fn learn(&mut self) -> Result<Option<f32>, AgentError> {
        let DqnSettings { batch, discount, target, rule, gradient_clip, .. } = self.settings;
        let Some(sample) = self.memory.sample(batch, &mut self.generator) else { return Ok(None) };
        let has_target = target != TargetNetwork::None;
        let (loss, gradient) = self.values.gradient(&self.weights, sample, discount, has_target)?;
        self.moments.step(rule, &mut self.weights, &gradient, gradient_clip);
        self.values.set_outdated();
        if let TargetNetwork::Every(steps) = target
            && self.moments.steps.is_multiple_of(steps.max(1))
        {
            self.renew_target()?;
        }
        Ok(Some(loss))
    }

    fn renew_target(&mut self) -> Result<(), AgentError> {
        self.target.copy_from_slice(&self.weights);
        Ok(self.values.set_target(&self.target)?)
    }

    /// After a restart: the target network and the weights as they were saved, in a new episode.
    pub(crate) fn resume(&mut self) -> Result<(), AgentError> {
        self.values.set_target(&self.target)?;
        self.values.set_outdated();
        self.memory.cut_off();
        self.episode = None;
        Ok(())
    }
}
