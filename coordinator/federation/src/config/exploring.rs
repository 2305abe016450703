//! `[exploring]`: the rule that ends the measurement of contributions.

use evenhand_fairness::StopRule;
use serde::{Deserialize, Serialize};

use super::Policy;
use super::check::{RuleError, at_least_one, between_zero_and_one, positive};

/// The rule that ends the measurement of contributions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExploringConfig {
    /// The test.
    pub rule: StopRuleKind,
    /// τ: rounds that must not have moved the standings.
    pub window: u32,
    /// M: nodes whose contributions are tested, drawn once.
    pub tested_nodes: u32,
    /// α of the paper's rule: stop when p reaches it.
    pub alpha: f64,
    /// Of the calibrated rule: the test's level.
    pub level: f64,
    /// Of the calibrated rule: half-widths of the standings, in temperatures.
    pub precision: f64,
    /// Nodes whose contributions never vary, or follow from those of the others, are left out of the test, and others
    /// tested in their place; the published test waits for them without end.
    pub skip_uninformative: bool,
    /// Exploit after so many exploring rounds in any case: each of them gives everybody the model. 0 leaves it to the rule.
    pub rounds_max: u32,
    /// A newcomer is measured for so many rounds.
    pub newcomer_rounds: u32,
}

impl Default for ExploringConfig {
    fn default() -> Self {
        Self {
            rule: StopRuleKind::Paper,
            window: 15,
            tested_nodes: 10,
            alpha: 0.7,
            level: 0.05,
            precision: 1.0,
            skip_uninformative: true,
            rounds_max: 300,
            newcomer_rounds: 15,
        }
    }
}

impl ExploringConfig {
    /// This file, whose doc comments explain the keys in `print-config`.
    pub const SOURCE: &str = include_str!("exploring.rs");

    /// The rule with its parameters.
    pub fn stop_rule(&self) -> StopRule {
        let window = self.window as usize;
        match self.rule {
            StopRuleKind::Paper => StopRule::Paper { window, alpha: self.alpha },
            StopRuleKind::Calibrated => {
                StopRule::Calibrated { window, level: self.level, precision: self.precision }
            }
        }
    }

    /// Checks the section for a federation that begins with so many `nodes`. Under the policy `continuous` nothing waits for
    /// the test, and it is of as many nodes as there are.
    pub(super) fn check(&self, nodes: u32, policy: Policy) -> Result<(), RuleError> {
        at_least_one("exploring.tested_nodes", self.tested_nodes)?;
        at_least_one("exploring.newcomer_rounds", self.newcomer_rounds)?;
        let (window, tested) = (self.window, self.tested_nodes);
        if tested > nodes && policy == Policy::Paper {
            return Err(RuleError::TestedAboveNodes { tested, nodes });
        }
        if window <= tested {
            return Err(RuleError::WindowWithinTested { window, tested });
        }
        between_zero_and_one("exploring.alpha", self.alpha)?;
        between_zero_and_one("exploring.level", self.level)?;
        positive("exploring.precision", self.precision)
    }

    /// Takes over from `wanted` what may change while a federation is under way.
    pub(super) fn amend(&mut self, wanted: &Self) {
        self.rounds_max = wanted.rounds_max;
    }
}

/// The test that ends exploring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopRuleKind {
    /// One-sample Hotelling T², as published.
    #[default]
    Paper,
    /// Two-sample T² and precise standings.
    Calibrated,
}
