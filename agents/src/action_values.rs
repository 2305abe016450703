//! The network of an agent: values of all actions in a state.

use evenhand_models::{Batch, Loss, Model, ModelError, Predictor, Targets, Trainer};

use crate::environment::FrameShape;
use crate::replay_memory::TransitionSample;

/// Values of actions by a model, and their learning.
pub struct ActionValues {
    shape: FrameShape,
    actions: usize,
    trainer: Trainer,
    predictor: Predictor,
    /// The predictor holds the weights that were given last.
    is_current: bool,
    target: Predictor,
}

/// A network that does not fit the game.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The model cannot be run.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model has fewer outputs than the game has actions.
    #[error(
        "the network has {outputs} outputs for {actions} actions; choose a model with an output for each"
    )]
    Actions {
        /// Outputs of the model.
        outputs: usize,
        /// Actions of the game.
        actions: usize,
    },
}

impl ActionValues {
    /// The values by a model for a game whose states and actions are these; a model may have more outputs than actions.
    pub fn new(
        model: &Model,
        weights: &[f32],
        shape: FrameShape,
        actions: usize,
    ) -> Result<Self, NetworkError> {
        let mut predictor = Predictor::new(model, weights)?;
        let outputs = predictor.predict(&vec![0.0; shape.state_len()], &shape.batch_shape(1))?.len();
        if outputs < actions {
            return Err(NetworkError::Actions { outputs, actions });
        }
        Ok(Self {
            shape,
            actions,
            trainer: Trainer::new(model),
            predictor,
            is_current: false,
            target: Predictor::new(model, weights)?,
        })
    }

    /// Weights have changed: the next values are computed with new ones.
    pub fn set_outdated(&mut self) {
        self.is_current = false;
    }

    /// Sets the weights of the target network.
    pub fn set_target(&mut self, weights: &[f32]) -> Result<(), ModelError> {
        self.target.set_weights(weights)
    }

    /// The best action in a state, the first of equally good ones.
    pub fn best_action(&mut self, weights: &[f32], state: &[f32]) -> Result<usize, ModelError> {
        if !self.is_current {
            self.predictor.set_weights(weights)?;
            self.is_current = true;
        }
        let values = self.predictor.predict(state, &self.shape.batch_shape(1))?;
        Ok(best(&values[..self.actions]).0)
    }

    /// Huber loss of sampled transitions and its gradient, against r + γ·max Q of the target network, or of these weights
    /// where there is none.
    pub fn gradient(
        &mut self,
        weights: &[f32],
        sample: TransitionSample,
        discount: f32,
        has_target: bool,
    ) -> Result<(f32, Vec<f32>), ModelError> {
        let TransitionSample { states, next_states, actions, rewards, terminated } = sample;
        let shape = self.shape.batch_shape(actions.len());
        let judge = if has_target {
            &mut self.target
        } else {
            if !self.is_current {
                self.predictor.set_weights(weights)?;
                self.is_current = true;
            }
            &mut self.predictor
        };
        let next = judge.predict(&next_states, &shape)?;
        let outputs = next.len() / actions.len().max(1);
        let values =
            next.chunks(outputs.max(1)).zip(rewards).zip(terminated).map(|((values, reward), over)| {
                reward + if over { 0.0 } else { discount * best(&values[..self.actions]).1 }
            });
        let targets = Targets::Chosen { values: values.collect(), columns: actions };
        let batch = Batch { inputs: states, shape: shape.to_vec(), targets };
        let step = self.trainer.gradient(weights, &batch, Loss::Huber)?;
        Ok((step.loss, step.gradient))
    }
}

/// The first of the largest values, with its place.
fn best(values: &[f32]) -> (usize, f32) {
    values.iter().enumerate().fold((0, f32::NEG_INFINITY), |(place, most), (index, &value)| {
        if value > most { (index, value) } else { (place, most) }
    })
}
