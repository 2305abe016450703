//! Day-ahead forecasts in the status: the vector, its skill, or what is still missing.

use std::fmt;

use evenhand_program::prometheus::MetricKind::Gauge;
use evenhand_program::prometheus::MetricsText;
use serde::{Deserialize, Serialize};

use crate::core::Node;
use crate::forecast::{ForecastVector, SkillSums};
use crate::source::time::iso_text;

/// The status of a node's day-ahead forecasts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForecastStatus {
    /// What is missing until the first forecast.
    pub collecting: Option<CollectingStatus>,
    /// The newest forecast. It is for the steps after `issued_ms`, each named by its end.
    pub vector: Option<ForecastVector>,
    /// Skill over all leads.
    pub overall: Option<SkillStatus>,
    /// Skill by lead, short leads first.
    pub leads: Vec<SkillStatus>,
    /// Skill by rounds since the model was received: what being drawn was worth.
    pub staleness: Vec<SkillStatus>,
}

/// Steps that a first forecast needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectingStatus {
    /// Steps in memory.
    pub steps: usize,
    /// Steps that are needed.
    pub needed: usize,
    /// The expected time of the first forecast, in milliseconds since 1970; none before the first step.
    pub first_forecast_ms: Option<i64>,
}

/// Skill of some forecasts: 1 − MAE / MAE of the best naive forecast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkillStatus {
    /// The forecasts: a lead group, or an age of the model.
    pub of: String,
    /// Skill over the last four weeks, or since the beginning where there is no such figure.
    pub skill: Option<f64>,
    /// Skill since the beginning.
    pub skill_all: Option<f64>,
    /// Share of the loads between the 10 % and the 90 % quantile.
    pub coverage: Option<f64>,
    /// Mean pinball loss, in the meter's unit.
    pub pinball: Option<f64>,
    /// The best naive forecast.
    pub best_naive: String,
    /// Steps that were forecast.
    pub count: u64,
}

impl SkillStatus {
    fn new(of: &str, recent: &SkillSums, all: &SkillSums) -> Self {
        Self {
            of: of.to_owned(),
            skill: recent.skill(),
            skill_all: all.skill(),
            coverage: recent.coverage(),
            pinball: recent.mean_pinball(),
            best_naive: recent.best_naive().name().to_owned(),
            count: recent.count,
        }
    }
}

impl ForecastStatus {
    /// The status of a node's forecasts; none if it makes no day-ahead forecasts.
    pub(super) fn of(node: &Node) -> Option<Self> {
        let forecaster = node.window().day_ahead()?.forecaster();
        let (missing, history) = (forecaster.steps_missing(), forecaster.history());
        let collecting = (missing > 0).then(|| CollectingStatus {
            steps: history.len(),
            needed: history.len() + missing,
            first_forecast_ms: history.newest().map(|newest| history.end_ms(newest + missing as i64)),
        });
        let skill = forecaster.skill();
        let [recent, all] = skill.overall();
        let lead =
            |lead: &crate::forecast::LeadSkill| SkillStatus::new(lead.group.name(), &lead.recent, &lead.all);
        Some(Self {
            collecting,
            vector: node.forecast_vector().cloned(),
            overall: (all.count > 0).then(|| SkillStatus::new("all", &recent, &all)),
            leads: skill.by_lead().iter().map(lead).collect(),
            staleness: skill
                .by_staleness()
                .map(|(class, sums)| SkillStatus::new(class.name(), sums, sums))
                .collect(),
        })
    }

    /// Skill by lead and by the model's age, coverage by lead, and the pinball loss over all leads.
    pub(super) fn add_metrics(&self, metrics: &mut MetricsText) {
        let skills = || self.leads.iter().chain(&self.overall);
        metrics.family("forecast_skill", Gauge, "Skill against the best naive forecast, last four weeks.");
        for (skill, value) in skills().filter_map(|skill| Some((skill, skill.skill?))) {
            metrics.sample("forecast_skill", &[("lead", &skill.of)], value);
        }
        let since = self.overall.as_ref().and_then(|overall| overall.skill_all);
        metrics.optional_gauge(
            "forecast_skill_since_joining",
            "Skill over all leads since the beginning.",
            since,
        );
        metrics.family("forecast_skill_by_staleness", Gauge, "Skill by rounds since the model was received.");
        for (skill, value) in self.staleness.iter().filter_map(|skill| Some((skill, skill.skill?))) {
            metrics.sample("forecast_skill_by_staleness", &[("staleness", &skill.of)], value);
        }
        metrics.family(
            "forecast_coverage",
            Gauge,
            "Share of the loads within the quantiles, last four weeks.",
        );
        for (skill, value) in skills().filter_map(|skill| Some((skill, skill.coverage?))) {
            metrics.sample("forecast_coverage", &[("lead", &skill.of)], value);
        }
        let pinball = self.overall.as_ref().and_then(|overall| overall.pinball);
        metrics.optional_gauge("forecast_pinball", "Mean pinball loss, in the meter's unit.", pinball);
    }
}

impl fmt::Display for ForecastStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(CollectingStatus { steps, needed, first_forecast_ms }) = self.collecting {
            let when = first_forecast_ms
                .map_or("after the first step".into(), |time_ms| format!("about {}", iso_text(time_ms)));
            writeln!(f, "  day ahead  collecting, {steps} of {needed} steps, first forecast {when}")?;
        }
        if let Some(vector) = &self.vector {
            let reach = vector.for_ms(vector.values.len().saturating_sub(1));
            writeln!(f, "  day ahead  {} steps to {}", vector.values.len(), iso_text(reach))?;
        }
        for skill in self.leads.iter().chain(&self.overall) {
            let Some(value) = skill.skill else { continue };
            writeln!(
                f,
                "  skill      {:<10} {:+.1} % against {}, coverage {:.0} %",
                skill.of,
                100.0 * value,
                skill.best_naive,
                100.0 * skill.coverage.unwrap_or(0.0)
            )?;
        }
        for skill in &self.staleness {
            let Some(value) = skill.skill else { continue };
            writeln!(f, "  skill      with a model of {}: {:+.1} %", skill.of, 100.0 * value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_being_drawn_was_worth_is_in_the_metrics() {
        let sums =
            SkillSums { count: 4, absolute: 3.0, naive: [5.0, 6.0, 4.0, 8.0, 9.0], pinball: 2.0, covered: 3 };
        let status = ForecastStatus {
            collecting: None,
            vector: None,
            overall: Some(SkillStatus::new("all", &SkillSums::default(), &sums)),
            leads: Vec::new(),
            staleness: vec![SkillStatus::new("up to 4 rounds", &sums, &sums)],
        };
        let mut metrics = MetricsText::new("evenhand_node");
        status.add_metrics(&mut metrics);
        let text = metrics.into_text();
        assert!(text.contains("forecast_skill_by_staleness{staleness=\"up to 4 rounds\"} 0.25"), "{text}");
        assert!(text.contains("forecast_skill_since_joining 0.25"), "{text}");
        assert!(!text.contains("forecast_skill{"), "nothing in the last four weeks: {text}");
    }

    #[test]
    fn what_is_missing_is_said_instead_of_nothing() {
        let collecting =
            CollectingStatus { steps: 3, needed: 24, first_forecast_ms: Some(1_704_133_800_000) };
        let status = ForecastStatus {
            collecting: Some(collecting),
            vector: None,
            overall: None,
            leads: Vec::new(),
            staleness: Vec::new(),
        };
        let expected = "collecting, 3 of 24 steps, first forecast about 2024-01-01T18:30:00Z";
        assert!(status.to_string().contains(expected), "{status}");
    }
}
