//! The setup of a trial with agents: everything that its figures depend on.

use std::path::PathBuf;

use evenhand_agents::{DqnSettings, ExplorationSchedule, GridGame, TargetNetwork};
use serde::{Deserialize, Serialize};

use super::engine::GameEngine;
use crate::data::AsPublished;
use crate::experiment::setup_check::SettingError;
use crate::experiment::variant::Variant;
use crate::names::value_name;
use crate::scenario::AgentCorruption;

/// Decisions after which ε has fallen to its end, summed over the agents.
const EXPLORATION_DECISIONS: u64 = 850_000;
/// Agents, at most: each has its own memory.
const NODES_MAX: usize = 100;
/// The largest number of anything else that is counted.
const COUNT_MAX: u64 = 1_000_000;

/// One run of one variant on one game; equal setups have equal figures, timings aside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GameSetup {
    /// The game.
    pub task: GridGame,
    /// Its engine.
    pub engine: GameEngine,
    /// What makes agents differ.
    pub corruption: AgentCorruption,
    /// How much: 1 as published, 0 not at all.
    pub level: f64,
    /// The variant: a strategy with its stop rule and sampler.
    pub variant: Variant,
    /// The authority where the published code differs from the paper.
    pub as_published: AsPublished,
    /// N.
    pub nodes: usize,
    /// T.
    pub rounds: u32,
    /// Decisions of an agent in a round.
    pub decisions: u64,
    /// Decisions between two gradient steps.
    pub train_every: u64,
    /// Without a target network.
    pub no_target: bool,
    /// Nodes drawn in a round.
    pub k: usize,
    /// β.
    pub temperature: f64,
    /// τ.
    pub window: usize,
    /// α.
    pub alpha: f64,
    /// Episodes by which a model is scored.
    pub episodes: u32,
    /// Seed of everything random.
    pub seed: u64,
}

impl GameSetup {
    /// The paper's settings.
    pub fn published(
        task: GridGame,
        engine: GameEngine,
        corruption: AgentCorruption,
        variant: Variant,
        as_published: AsPublished,
        seed: u64,
    ) -> Self {
        Self {
            task,
            engine,
            corruption,
            level: 1.0,
            variant,
            as_published,
            nodes: 5,
            rounds: 450,
            decisions: 2_000,
            train_every: 2,
            no_target: as_published == AsPublished::Code,
            k: 2,
            temperature: if as_published == AsPublished::Code { 1.0 / 30.0 } else { 0.01 },
            window: 20,
            alpha: 0.95,
            episodes: 5,
            seed,
        }
    }

    /// An error that names a setting which is out of its range.
    pub fn check(&self) -> Result<(), SettingError> {
        let countable = |count: u64| (1..=COUNT_MAX).contains(&count);
        let counted = || format!("between 1 and {COUNT_MAX}");
        let rules = [
            ("nodes", (2..=NODES_MAX).contains(&self.nodes), format!("between 2 and {NODES_MAX} agents")),
            ("k", (1..=self.nodes).contains(&self.k), format!("between 1 and the {} agents", self.nodes)),
            ("rounds", countable(self.rounds.into()), counted()),
            ("decisions", countable(self.decisions), counted()),
            ("train-every", countable(self.train_every), counted()),
            ("episodes", countable(self.episodes.into()), counted()),
            ("window", self.window > self.nodes, format!("above the {} agents", self.nodes)),
            (
                "temperature",
                self.temperature > 0.0 && self.temperature.is_finite(),
                "a number above 0".into(),
            ),
            ("alpha", self.alpha > 0.0 && self.alpha < 1.0, "between 0 and 1".into()),
            ("level", (0.0..=1.0).contains(&self.level), "between 0 and 1".into()),
        ];
        match rules.into_iter().find(|(_, holds, _)| !holds) {
            None => Ok(()),
            Some((flag, _, expected)) => {
                let value = self.flags().into_iter().find(|(name, _)| *name == flag);
                Err(SettingError { flag, value: value.map_or(String::new(), |(_, value)| value), expected })
            }
        }
    }

    /// The values in which the agents differ.
    pub fn values(&self) -> Vec<f64> {
        self.corruption.values(self.task, self.nodes, self.level)
    }

    /// The settings of an agent with this value.
    pub fn agent(&self, value: f64, base: DqnSettings) -> DqnSettings {
        let decisions = EXPLORATION_DECISIONS / self.nodes as u64;
        let base = DqnSettings {
            train_every: self.train_every,
            target: if self.no_target { TargetNetwork::None } else { base.target },
            exploration: ExplorationSchedule { first: 1.0, last: 0.1, decisions },
            ..base
        };
        self.corruption.settings(value, self.nodes, base)
    }

    /// The same trial with another seed.
    pub fn with_seed(&self, seed: u64) -> Self {
        Self { seed, ..self.clone() }
    }

    /// The control: the same trial with equal agents; none where they are equal already.
    pub fn control(&self) -> Option<Self> {
        (self.level > 0.0).then(|| Self { level: 0.0, ..self.clone() })
    }

    /// The path of its record within a folder of results.
    pub fn path(&self) -> PathBuf {
        let mut path = PathBuf::from("games");
        path.push(format!("{}-{}", self.task.name(), value_name(&self.engine)));
        path.push(value_name(&self.corruption));
        path.push(value_name(&self.as_published));
        path.push(self.variant.name());
        path.extend(self.own_name());
        path.push(format!("seed-{}.json", self.seed));
        path
    }

    /// The settings other than the published ones; none if there are none.
    pub fn own_name(&self) -> Option<String> {
        let GameSetup { task, engine, corruption, variant, as_published, seed, .. } = *self;
        let published = Self::published(task, engine, corruption, variant, as_published, seed);
        let own: Vec<String> = (self.flags().into_iter().zip(published.flags()))
            .filter(|(ours, theirs)| ours != theirs)
            .map(|((name, value), _)| format!("{name}-{value}"))
            .collect();
        (!own.is_empty()).then(|| own.join(","))
    }

    fn flags(&self) -> [(&'static str, String); 11] {
        [
            ("level", self.level.to_string()),
            ("nodes", self.nodes.to_string()),
            ("rounds", self.rounds.to_string()),
            ("decisions", self.decisions.to_string()),
            ("train-every", self.train_every.to_string()),
            ("no-target", self.no_target.to_string()),
            ("k", self.k.to_string()),
            ("temperature", self.temperature.to_string()),
            ("window", self.window.to_string()),
            ("alpha", self.alpha.to_string()),
            ("episodes", self.episodes.to_string()),
        ]
    }
}
