//! Agents: learning, local training, and their state after a restart.
#![allow(clippy::unwrap_used)]

use evenhand_agents::{
    DqnAgent, DqnSettings, Environment, EnvironmentError, EnvironmentStep, EpisodeEnd, ExplorationSchedule,
    FrameShape, GridGame, LearningRule, ObservationNoise, TargetNetwork,
};
use evenhand_models::{LoadOptions, Model, shipped};

/// Shows a number from 0 to 3 as a full channel, and rewards the action of that number; an episode has eight steps.
struct Signals {
    shown: usize,
    step: usize,
}

impl Signals {
    fn show(&mut self, frame: &mut [u8]) {
        self.shown = (self.shown * 5 + 3) % 4;
        frame.fill(0);
        frame[100 * self.shown..][..100].fill(255);
    }
}

impl Environment for Signals {
    fn frame_shape(&self) -> FrameShape {
        FrameShape { channels: 4, rows: 10, columns: 10, stacked: 1 }
    }

    fn actions(&self) -> usize {
        4
    }

    fn reset(&mut self, frame: &mut [u8]) -> Result<(), EnvironmentError> {
        self.step = 0;
        self.show(frame);
        Ok(())
    }

    fn step(&mut self, action: usize, frame: &mut [u8]) -> Result<EnvironmentStep, EnvironmentError> {
        let reward = if action == self.shown { 1.0 } else { 0.0 };
        self.step += 1;
        self.show(frame);
        let end = if self.step == 8 { EpisodeEnd::Terminated } else { EpisodeEnd::Continues };
        Ok(EnvironmentStep { reward, end })
    }
}

fn settings() -> DqnSettings {
    DqnSettings {
        discount: 0.5,
        batch: 8,
        memory: 400,
        replay_start: 50,
        target: TargetNetwork::Every(50),
        exploration: ExplorationSchedule { first: 1.0, last: 0.0, decisions: 300 },
        rule: LearningRule::Adam { learning_rate: 2e-3 },
        ..DqnSettings::minatar()
    }
}

fn model() -> Model {
    Model::load(shipped::DQN_MINATAR_4, &LoadOptions::default()).unwrap()
}

fn agent(settings: DqnSettings, environment: Box<dyn Environment>) -> DqnAgent {
    let model = model();
    DqnAgent::new(settings, environment, ObservationNoise::default(), &model, &model.initial_weights(), 3)
        .unwrap()
}

fn signals() -> Box<Signals> {
    Box::new(Signals { shown: 0, step: 0 })
}

#[test]
fn an_agent_learns_which_action_pays_with_and_without_a_target_network() {
    for target in [TargetNetwork::Every(50), TargetNetwork::None] {
        let mut agent = agent(DqnSettings { target, ..settings() }, signals());
        for _ in 0..900 {
            agent.live().unwrap();
        }
        let score = agent.mean_score().unwrap();
        assert!(score > 7.0, "{target:?}: {score} of 8, by chance 2");
    }
}

#[test]
fn nothing_is_learned_from_rewards_that_are_all_reassigned() {
    let (model, weights) = (model(), model().initial_weights());
    let noise = ObservationNoise { reward_share: 1.0, ..Default::default() };
    let mut agent = DqnAgent::new(settings(), signals(), noise, &model, &weights, 3).unwrap();
    for _ in 0..900 {
        agent.live().unwrap();
    }
    assert!(agent.mean_score().unwrap() < 5.0, "{:?}", agent.mean_score());
}

#[test]
fn the_update_is_the_way_from_the_given_weights() {
    let mut agent = agent(settings(), signals());
    agent.fill_memory().unwrap();
    assert_eq!((agent.memory().len(), agent.decisions()), (50, 0));
    let given: Vec<f32> = model().initial_weights().iter().map(|weight| weight * 0.5).collect();
    let trained = agent.train(&given, 40, || false).unwrap().unwrap();
    assert_eq!((agent.decisions(), agent.gradient_steps()), (40, 40));
    assert!(trained.loss > 0.0 && trained.update.iter().any(|step| *step != 0.0));
    for ((old, new), step) in given.iter().zip(agent.weights()).zip(&trained.update) {
        assert_eq!(old - new, *step);
    }
    assert_eq!(agent.train(&given, 40, || true).unwrap(), None);
}

#[test]
fn a_memory_smaller_than_the_start_is_learned_from_all_the_same() {
    let mut agent = agent(DqnSettings { memory: 60, replay_start: 5_000, ..settings() }, signals());
    for _ in 0..70 {
        agent.live().unwrap();
    }
    assert!(agent.gradient_steps() > 0);
}

#[test]
fn memory_steps_and_exploration_survive_a_restart() {
    let mut before = agent(settings(), signals());
    for _ in 0..430 {
        before.live().unwrap();
    }
    let mut after = agent(settings(), signals());
    after.restore(&before.save()).unwrap();
    assert_eq!((after.decisions(), after.gradient_steps()), (before.decisions(), before.gradient_steps()));
    assert_eq!(after.exploration(), before.exploration());
    assert_eq!(after.weights(), before.weights());
    assert_eq!((after.memory().len(), after.mean_score()), (400, before.mean_score()));
    for age in [0, 17, 398] {
        assert_eq!(after.memory().state(age), before.memory().state(age));
    }
    let newest = after.memory().experience(399).unwrap();
    assert_ne!(newest.end, EpisodeEnd::Continues, "its next frame belongs to another episode");
    after.live().unwrap();
}

#[test]
fn a_saved_agent_of_something_else_is_refused_and_changes_nothing() {
    let mut agent_before = agent(settings(), signals());
    agent_before.fill_memory().unwrap();
    let saved = agent_before.save();
    let error = |other: &mut DqnAgent, saved: &[u8]| other.restore(saved).unwrap_err().to_string();
    let mut smaller = agent(DqnSettings { memory: 300, ..settings() }, signals());
    assert!(error(&mut smaller, &saved).contains("size of the memory"));
    assert!(smaller.memory().is_empty());
    let mut same = agent(settings(), signals());
    assert!(error(&mut same, &saved[..saved.len() / 2]).contains("cannot be read"));
    assert!(error(&mut same, &[99, 1]).contains("format 99"));
    assert!(error(&mut same, &[]).contains("cannot be read"));
    for at in (0..saved.len()).step_by(saved.len() / 60) {
        let mut broken = saved.clone();
        broken[at] ^= 0x55;
        // It is refused or taken over, but never panics; nor does the next decision.
        if same.restore(&broken).is_ok() {
            same.live().unwrap();
        }
    }
}

#[test]
fn a_network_with_too_few_outputs_is_refused() {
    struct ManyActions;
    impl Environment for ManyActions {
        fn frame_shape(&self) -> FrameShape {
            FrameShape { channels: 4, rows: 10, columns: 10, stacked: 1 }
        }
        fn actions(&self) -> usize {
            7
        }
        fn reset(&mut self, _: &mut [u8]) -> Result<(), EnvironmentError> {
            Ok(())
        }
        fn step(&mut self, action: usize, _: &mut [u8]) -> Result<EnvironmentStep, EnvironmentError> {
            Err(EnvironmentError::Action { action, actions: 7 })
        }
    }
    let (model, weights) = (model(), model().initial_weights());
    let noise = ObservationNoise::default();
    let refused = DqnAgent::new(settings(), Box::new(ManyActions), noise, &model, &weights, 3).err().unwrap();
    assert!(refused.to_string().contains("6 outputs for 7 actions"), "{refused}");
}

#[test]
fn the_same_seed_gives_the_same_agent() {
    let run = || {
        let mut agent = agent(settings(), Box::new(GridGame::Breakout.environment(5)));
        (0..120).for_each(|_| {
            agent.live().unwrap();
        });
        agent.weights().to_vec()
    };
    assert_eq!(run(), run());
}
