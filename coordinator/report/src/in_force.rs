//! The stop rule and the temperature that were in force.

use evenhand_federation::{Rules, StopRuleKind};

use crate::number_text::significant;
use crate::round_log::{RoundLog, StopSummary};

/// The stop rule of some rules, in words and numbers.
#[derive(Debug, Clone, Copy)]
pub struct StopCriterion<'a> {
    rules: &'a Rules,
}

impl<'a> StopCriterion<'a> {
    /// The criterion by which `rules` end exploring.
    pub fn new(rules: &'a Rules) -> Self {
        Self { rules }
    }

    /// The value that p has to reach: α, or the calibrated rule's level.
    pub fn threshold(self) -> f64 {
        match self.rules.exploring.rule {
            StopRuleKind::Paper => self.rules.exploring.alpha,
            StopRuleKind::Calibrated => self.rules.exploring.level,
        }
    }

    /// The threshold with its name.
    pub(crate) fn threshold_text(self) -> String {
        match self.rules.exploring.rule {
            StopRuleKind::Paper => format!("α = {}", self.threshold()),
            StopRuleKind::Calibrated => format!("level {}", self.threshold()),
        }
    }

    /// Names and values for a reader.
    pub(crate) fn settings(self) -> Vec<(&'static str, String)> {
        let exploring = &self.rules.exploring;
        let mut shown = match exploring.rule {
            StopRuleKind::Paper => vec![
                ("stop rule", "paper".to_owned()),
                ("stop rule: p has to reach α", exploring.alpha.to_string()),
            ],
            StopRuleKind::Calibrated => vec![
                ("stop rule", "calibrated".to_owned()),
                ("stop rule: level of its tests", exploring.level.to_string()),
                ("stop rule: precision of standings, in β", exploring.precision.to_string()),
            ],
        };
        shown.push(("stop rule: window τ", exploring.window.to_string()));
        shown.push(("stop rule: tested nodes M", exploring.tested_nodes.to_string()));
        if exploring.rounds_max > 0 {
            shown.push(("exploring rounds at most", exploring.rounds_max.to_string()));
        }
        shown
    }

    /// The reason for which exploring ended with a round of this verdict.
    pub(crate) fn end_text(self, verdict: Option<&StopSummary>) -> String {
        let limit = self.rules.exploring.rounds_max;
        match verdict {
            Some(verdict) if verdict.stop => match (self.rules.exploring.rule, verdict.p_value) {
                (StopRuleKind::Paper, Some(p)) if p >= self.threshold() => {
                    format!("p = {p:.3} reached {}", self.threshold_text())
                }
                _ => verdict.reason.clone(),
            },
            _ if limit > 0 => format!("at the limit of {limit} rounds, before the stop rule was met"),
            _ => "before the stop rule was met".into(),
        }
    }

    /// The reason for which the stop rule is not met.
    pub(crate) fn unmet_text(self, verdict: Option<&StopSummary>) -> String {
        match verdict {
            Some(StopSummary { p_value: Some(p), .. }) if *p < self.threshold() => {
                format!("the last p = {p:.3} is below {}", self.threshold_text())
            }
            Some(verdict) => verdict.reason.clone(),
            None => "the stop rule was not asked".into(),
        }
    }
}

/// β of the rounds in which nodes were drawn, and where it comes from.
pub(crate) fn temperature_text(rules: &Rules, log: &RoundLog) -> String {
    let (written, wanted) = (rules.exploiting.temperature, rules.exploiting.worst_staleness);
    let mut used: Vec<f64> = log.drawing_rounds().map(|round| round.temperature).collect();
    used.sort_by(f64::total_cmp);
    used.dedup();
    let values = match used.as_slice() {
        [] => None,
        [one] => Some(significant(*one)),
        [least, .., most] => Some(format!("{} to {}", significant(*least), significant(*most))),
    };
    let aim = format!("a worst expected staleness of {wanted} rounds");
    match values {
        values if wanted == 0.0 => values.unwrap_or_else(|| significant(written)),
        None => format!("not found yet; it will be chosen for {aim}"),
        Some(values) if used == [written] => {
            format!("{values} as configured, since {aim} cannot be reached")
        }
        Some(values) => format!("{values}, found for {aim}"),
    }
}
