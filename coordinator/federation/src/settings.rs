//! What a federation is run by, as somebody wrote it.

use evenhand_protocol::codec::CodecKind;
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::{LossKind, UpdateKind};
use serde::{Deserialize, Serialize};

use crate::strategy::{Baseline, StrategyKind};
use evenhand_fairness::{ContributionConfig, SamplerKind, StopRule};

/// Parameters as somebody wrote them; [`Rules::new`](super::Rules::new) checks them.
///
/// The same sections and names as in the coordinator's TOML file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FederationConfig {
    /// Who, how many, how long.
    pub federation: GeneralConfig,
    /// What nodes compute.
    pub training: TrainingConfig,
    /// How contributions are told.
    pub contribution: ContributionConfig,
    /// When they are known well enough.
    pub exploring: ExploringConfig,
    /// Who is drawn then.
    pub exploiting: ExploitingConfig,
    /// Who and what is let in.
    pub admission: AdmissionConfig,
    /// Of the strategies that are not ours.
    pub baseline: Baseline,
}

/// Who, how many, how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GeneralConfig {
    /// The federation's name, one level of its topics.
    pub name: FederationId,
    /// Of every random draw.
    pub seed: u64,
    /// The federation is finished after so many rounds.
    pub rounds: u32,
    /// It begins when so many nodes are there.
    pub nodes_min: u32,
    /// More are not enrolled.
    pub nodes_max: u32,
    /// A round goes on without those who have not answered by then.
    pub round_deadline_ms: u32,
    /// Rounds begin at least so far apart; 0 for one right after the other.
    pub round_interval_ms: u32,
    /// How nodes are drawn and their updates merged.
    pub strategy: StrategyKind,
}

impl Default for GeneralConfig {
    fn default() -> Self {
        Self {
            name: FederationId::new("home").expect("a valid name"),
            seed: 1,
            rounds: 100,
            nodes_min: 12,
            nodes_max: 10_000,
            round_deadline_ms: 30_000,
            round_interval_ms: 0,
            strategy: StrategyKind::Evenhand,
        }
    }
}

/// What nodes compute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainingConfig {
    /// What is minimised.
    pub loss: Loss,
    /// η of θ_t = θ_{t−1} − η Σ pᵢΔθᵢ.
    pub learning_rate: f64,
    /// Whether whoever sent nothing counts as an update of zero, so that few updates make a short step, as in the published
    /// code; the paper's step is the mean of those that came.
    pub dilute: bool,
    /// At most so many samples enter a node's batch.
    pub samples_max: u32,
    /// Passes over the batch in local training; 0 asks for the plain gradient.
    pub local_epochs: u32,
    /// Step size of local training.
    pub local_learning_rate: f32,
    /// Momentum of local training, not kept across rounds.
    pub local_momentum: f32,
    /// What nodes make of the plain gradient before they send it; its memory stays on the node.
    pub optimiser: OptimiserKind,
    /// Momentum of the optimiser of that name.
    pub momentum: f32,
    /// How updates travel.
    #[serde(with = "codec_name")]
    pub codec: CodecKind,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            loss: Loss::Mse,
            learning_rate: 0.1,
            dilute: false,
            samples_max: 4096,
            local_epochs: 0,
            local_learning_rate: 0.01,
            local_momentum: 0.0,
            optimiser: OptimiserKind::None,
            momentum: 0.9,
            codec: CodecKind::F32,
        }
    }
}

impl TrainingConfig {
    /// What the update shall be.
    pub fn update_kind(&self) -> UpdateKind {
        match self.local_epochs {
            0 => match self.optimiser {
                OptimiserKind::None => UpdateKind::Gradient,
                OptimiserKind::Momentum => UpdateKind::Momentum { momentum: self.momentum },
                OptimiserKind::Adam => UpdateKind::Adam,
            },
            epochs => UpdateKind::Epochs {
                epochs,
                learning_rate: self.local_learning_rate,
                momentum: self.local_momentum,
            },
        }
    }
}

/// What a node makes of its gradients, from round to round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimiserKind {
    /// Nothing: the update is the gradient, as in the paper.
    #[default]
    None,
    /// v ← momentum·v + gradient, kept across rounds; the update is v.
    Momentum,
    /// The direction of Adam, with its usual parameters.
    Adam,
}

impl OptimiserKind {
    /// The name in configurations and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Momentum => "momentum",
            Self::Adam => "adam",
        }
    }
}

/// What is minimised, as it is written in configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Mean squared error.
    #[default]
    Mse,
    /// Cross-entropy on logits.
    CrossEntropy,
    /// Negative log-likelihood on log-probabilities.
    Nll,
    /// Huber with threshold 1.
    Huber,
}

impl From<Loss> for LossKind {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Mse => Self::Mse,
            Loss::CrossEntropy => Self::CrossEntropy,
            Loss::Nll => Self::Nll,
            Loss::Huber => Self::Huber,
        }
    }
}

/// A codec by its name.
mod codec_name {
    use evenhand_protocol::codec::CodecKind;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(codec: &CodecKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(codec)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CodecKind, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// When contributions are known well enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExploringConfig {
    /// Which test decides.
    pub rule: StopRuleKind,
    /// τ: rounds that must not have moved the standings.
    pub window: u32,
    /// M: nodes whose contributions are tested, drawn once.
    pub watched: u32,
    /// α of the paper's rule: stop when p reaches it.
    pub strictness: f64,
    /// Of the calibrated rule: the test's level.
    pub level: f64,
    /// Of the calibrated rule: half-widths of the standings, in temperatures.
    pub precision: f64,
    /// Whether nodes whose contributions never vary, or follow from those of the others, are left out of the test, and others
    /// watched in their place; the published test waits for them for ever.
    pub skip_constant: bool,
    /// Exploit after so many exploring rounds in any case; 0 leaves it to the rule.
    pub rounds_max: u32,
    /// A newcomer is measured for so many rounds.
    pub newcomer_rounds: u32,
}

impl Default for ExploringConfig {
    fn default() -> Self {
        Self {
            rule: StopRuleKind::Paper,
            window: 15,
            watched: 10,
            strictness: 0.7,
            level: 0.05,
            precision: 1.0,
            skip_constant: true,
            rounds_max: 0,
            newcomer_rounds: 15,
        }
    }
}

impl ExploringConfig {
    /// The rule with its parameters.
    pub fn stop_rule(&self) -> StopRule {
        let window = self.window as usize;
        match self.rule {
            StopRuleKind::Paper => StopRule::Paper { window, alpha: self.strictness },
            StopRuleKind::Calibrated => {
                StopRule::Calibrated { window, level: self.level, precision: self.precision }
            }
        }
    }
}

/// Which test ends exploring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopRuleKind {
    /// One-sample Hotelling T², as published.
    #[default]
    Paper,
    /// Two-sample T² and precise standings.
    Calibrated,
}

/// Who is drawn once standings are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExploitingConfig {
    /// Draws a round.
    pub k: u32,
    /// How they are made.
    pub sampler: SamplerKind,
    /// β: the higher, the more equal.
    pub temperature: f64,
    /// Find β so that no node's expected staleness exceeds this; 0 takes `temperature` as it is.
    pub worst_staleness: f64,
    /// Every so many rounds everybody is measured again, to see whether the standings still hold; 0 for never.
    pub audit_every: u32,
    /// So many of these rounds are tested together against the exploration.
    pub audit_window: u32,
    /// The test's level: how often it may call for exploring although nothing has changed.
    pub audit_level: f64,
}

impl Default for ExploitingConfig {
    fn default() -> Self {
        Self {
            k: 4,
            sampler: SamplerKind::default(),
            temperature: 1.0 / 150.0,
            worst_staleness: 0.0,
            audit_every: 0,
            audit_window: 5,
            audit_level: 0.01,
        }
    }
}

/// Who and what is let in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdmissionConfig {
    /// The nodes that may enrol; empty for all.
    pub nodes: Vec<NodeId>,
    /// SHA-256, in hex, of the token a node must show; empty for none.
    pub token_sha256: String,
    /// The largest norm of an update.
    pub norm_max: f64,
    /// What happens to a larger one.
    pub norm: NormPolicy,
    /// An update longer than so many times the round's median is shortened to that; 0 leaves all as they are.
    pub norm_ratio_max: f64,
    /// Samples count up to so many times the round's median; 0 takes every node at its word.
    pub samples_ratio_max: f64,
    /// Messages taken from one node between two rounds; more are refused unread.
    pub messages_max: u32,
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            token_sha256: String::new(),
            norm_max: 1e4,
            norm: NormPolicy::Refuse,
            norm_ratio_max: 3.0,
            samples_ratio_max: 3.0,
            messages_max: 64,
        }
    }
}

/// What happens to an update that is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormPolicy {
    /// It does not count.
    #[default]
    Refuse,
    /// It is scaled down to the limit.
    Clip,
}
