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

    /// Names and values for a reader; of a test that only reports, under the name of what it tests.
    pub(crate) fn settings(self, reports_only: bool) -> Vec<(String, String)> {
        let exploring = &self.rules.exploring;
        let test = if reports_only { "test of settled standings" } else { "stop rule" };
        let mut shown = match exploring.rule {
            StopRuleKind::Paper => vec![
                (test.to_owned(), "paper".to_owned()),
                (format!("{test}: p has to reach α"), exploring.alpha.to_string()),
            ],
            StopRuleKind::Calibrated => vec![
                (test.to_owned(), "calibrated".to_owned()),
                (format!("{test}: level of its tests"), exploring.level.to_string()),
                (format!("{test}: precision of standings, in β"), exploring.precision.to_string()),
            ],
        };
        shown.push((format!("{test}: window τ"), exploring.window.to_string()));
        shown.push((format!("{test}: tested nodes M"), exploring.tested_nodes.to_string()));
        if exploring.rounds_max > 0 && !reports_only {
            shown.push(("exploring rounds at most".to_owned(), exploring.rounds_max.to_string()));
        }
        shown
    }

    /// What the last verdict of a test that only reports says.
    pub(crate) fn settled_text(self, verdict: Option<&StopSummary>) -> String {
        match verdict {
            Some(verdict) if verdict.stop => format!("Standings are settled: {}.", self.met_text(verdict)),
            verdict => format!("Standings still move: {}.", self.unmet_text(verdict)),
        }
    }

    /// The reason for which exploring ended with a round of this verdict.
    pub(crate) fn end_text(self, verdict: Option<&StopSummary>) -> String {
        let limit = self.rules.exploring.rounds_max;
        match verdict {
            Some(verdict) if verdict.stop => self.met_text(verdict),
            _ if limit > 0 => format!("at the limit of {limit} rounds, before the stop rule was met"),
            _ => "before the stop rule was met".into(),
        }
    }

    fn met_text(self, verdict: &StopSummary) -> String {
        match (self.rules.exploring.rule, verdict.p_value) {
            (StopRuleKind::Paper, Some(p)) if p >= self.threshold() => {
                format!("p = {p:.3} reached {}", self.threshold_text())
            }
            _ => verdict.reason.clone(),
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

/// β of the rounds of a run that promises a longest mean wait.
pub(crate) fn promise_text(wait: &str, log: &RoundLog) -> String {
    let aim = format!("the lowest at which nobody waits longer than {wait} rounds on average");
    match temperatures(log) {
        None => format!("not found yet: {aim}"),
        Some((values, _)) => format!("{values}, {aim}"),
    }
}

/// β of the rounds in which nodes were drawn, and where it comes from.
pub(crate) fn temperature_text(rules: &Rules, log: &RoundLog) -> String {
    let (written, wanted) = (rules.exploiting.temperature, rules.exploiting.worst_staleness);
    let aim = format!("a worst expected staleness of {wanted} rounds");
    match temperatures(log) {
        values if wanted == 0.0 => values.map_or_else(|| significant(written), |(values, _)| values),
        None => format!("not found yet; it will be chosen for {aim}"),
        Some((values, used)) if used == [written] => {
            format!("{values} as configured, since {aim} cannot be reached")
        }
        Some((values, _)) => format!("{values}, found for {aim}"),
    }
}

/// β of the rounds in which nodes were drawn, as a text and ascending; none before the first.
fn temperatures(log: &RoundLog) -> Option<(String, Vec<f64>)> {
    let mut used: Vec<f64> = log.drawing_rounds().map(|round| round.temperature).collect();
    used.sort_by(f64::total_cmp);
    used.dedup();
    let text = match used.as_slice() {
        [] => return None,
        [one] => significant(*one),
        [least, .., most] => format!("{} to {}", significant(*least), significant(*most)),
    };
    Some((text, used))
}
