//! Episodes played with a model as it is, for its score.

use evenhand_models::{Model, ModelError, Predictor};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::agent::AgentError;
use crate::environment::Environment;
use crate::state_stack::StateStack;

/// Plays with a model and does not learn.
pub struct Player {
    environment: Box<dyn Environment>,
    predictor: Predictor,
    stack: StateStack,
    frame: Vec<u8>,
    state: Vec<f32>,
    /// An episode is cut off after so many decisions.
    decisions_max: u32,
}

impl Player {
    /// A player of a game.
    pub fn new(
        environment: Box<dyn Environment>,
        model: &Model,
        decisions_max: u32,
    ) -> Result<Self, ModelError> {
        let shape = environment.frame_shape();
        Ok(Self {
            predictor: Predictor::new(model, &model.initial_weights())?,
            stack: StateStack::new(shape),
            frame: vec![0; shape.bytes()],
            state: Vec::new(),
            decisions_max,
            environment,
        })
    }

    /// Mean score of some episodes with these weights, acting at random with probability `exploration`.
    pub fn mean_score(
        &mut self,
        weights: &[f32],
        episodes: u32,
        exploration: f64,
        seed: u64,
    ) -> Result<f64, AgentError> {
        self.predictor.set_weights(weights)?;
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let mut total = 0.0;
        for _ in 0..episodes {
            total += self.episode(exploration, &mut generator, &mut |_| {})?;
        }
        Ok(total / f64::from(episodes.max(1)))
    }

    /// The score of one episode with the weights that were set last; `watch` is called with every frame.
    fn episode(
        &mut self,
        exploration: f64,
        generator: &mut ChaCha8Rng,
        watch: &mut dyn FnMut(&[u8]),
    ) -> Result<f64, AgentError> {
        let shape = self.environment.frame_shape();
        self.environment.reset(&mut self.frame)?;
        self.stack.begin(&self.frame);
        let mut score = 0.0;
        for _ in 0..self.decisions_max {
            watch(&self.frame);
            let actions = self.environment.actions();
            let action = if generator.random_bool(exploration.clamp(0.0, 1.0)) {
                generator.random_range(0..actions)
            } else {
                self.stack.write(&mut self.state);
                let values = self.predictor.predict(&self.state, &shape.batch_shape(1))?;
                let first = (0, f32::NEG_INFINITY);
                let values = values.iter().take(actions).enumerate();
                values
                    .fold(
                        first,
                        |best, (action, value)| if *value > best.1 { (action, *value) } else { best },
                    )
                    .0
            };
            let step = self.environment.step(action, &mut self.frame)?;
            score += f64::from(step.reward);
            self.stack.push(&self.frame);
            if step.end.is_over() {
                break;
            }
        }
        Ok(score)
    }

    /// The frames of one episode with these weights, at most so many, and its score up to there.
    pub fn filmed(
        &mut self,
        weights: &[f32],
        frames_max: usize,
        exploration: f64,
        seed: u64,
    ) -> Result<(Vec<Vec<u8>>, f64), AgentError> {
        self.predictor.set_weights(weights)?;
        let (decisions_max, mut frames) = (self.decisions_max, Vec::new());
        self.decisions_max = u32::try_from(frames_max).unwrap_or(u32::MAX);
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let score = self.episode(exploration, &mut generator, &mut |frame| frames.push(frame.to_vec()));
        self.decisions_max = decisions_max;
        Ok((frames, score?))
    }
}
