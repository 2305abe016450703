//! Payloads of the owner's topics: the node's state and its forecast.

use serde_json::{Map, Value, json};

use super::power_unit::PowerUnit;
use crate::core::Forecast;
use crate::forecast::ForecastVector;
use crate::shell::{SkillStatus, StatusSnapshot};
use crate::source::time::iso_text;

/// The node's standing, and the errors and skill of its forecasts.
pub(super) fn state(status: &StatusSnapshot) -> Value {
    let account = status.account.as_ref();
    let day_ahead = status.day_ahead.as_ref();
    let overall = day_ahead.and_then(|day_ahead| day_ahead.overall.as_ref());
    json!({
        "mean_absolute_error": status.mean_absolute_error,
        "skill_percent": overall.and_then(|overall| overall.skill).map(|skill| skill * 100.0),
        "skill_since_joining_percent": overall.and_then(|overall| overall.skill_all).map(|skill| skill * 100.0),
        "skill_percent_by_lead": day_ahead.map(|day_ahead| skill_percents(&day_ahead.leads)),
        "skill_percent_by_staleness": day_ahead.map(|day_ahead| skill_percents(&day_ahead.staleness)),
        "coverage_percent": overall.and_then(|overall| overall.coverage).map(|coverage| coverage * 100.0),
        "round": status.round,
        "standing": account.map(|account| account.standing),
        "chance_percent": account.map(|account| account.sampling_probability * 100.0),
        "staleness": account.map(|account| account.staleness),
    })
}

/// Skill by the name of the forecasts, where it is known.
fn skill_percents(skills: &[SkillStatus]) -> Map<String, Value> {
    let known = skills.iter().filter_map(|skill| Some((skill.of.clone(), (skill.skill? * 100.0).into())));
    known.collect()
}

/// A forecast of one step by its end.
pub(super) fn next_step(forecast: &Forecast) -> Value {
    json!({ "forecast": forecast.value, "forecast_for": iso_text(forecast.for_ms) })
}

/// A forecast of the next steps: its first median as `forecast`, the end of that step as `forecast_for`, and the whole vector.
///
/// `p10`, `p50`, `p90` are the quantiles in the meter's unit, one value a step. `watts`, where the unit is one of power,
/// are the medians by the beginning of their steps, as EMHASS takes a `load_power_forecast`.
pub(super) fn day_ahead(forecast: &ForecastVector, unit: &str) -> Value {
    let start = |index: usize| iso_text(forecast.for_ms(index) - i64::from(forecast.step_s) * 1000);
    let mut payload = json!({
        "forecast": forecast.medians().next().map(decimal),
        "forecast_for": (!forecast.values.is_empty()).then(|| iso_text(forecast.for_ms(0))),
        "start": (!forecast.values.is_empty()).then(|| start(0)),
        "step_s": forecast.step_s,
        "unit": unit,
        "levels": forecast.levels,
    });
    for (column, level) in forecast.levels.iter().enumerate() {
        payload[quantile_name(*level)] =
            forecast.values.iter().map(|quantiles| decimal(quantiles[column])).collect();
    }
    if let Some(unit) = PowerUnit::of(unit) {
        let medians = forecast.medians().enumerate();
        let watts: Map<String, Value> =
            medians.map(|(index, median)| (start(index), unit.watts(median).into())).collect();
        payload["watts"] = watts.into();
    }
    payload
}

/// The name of a quantile: p10 for 0.1.
pub(super) fn quantile_name(level: f64) -> String {
    format!("p{}", (level * 100.0 * 100.0).round() / 100.0)
}

/// The number with the fewest digits that tell it from others of single precision; null if it is none.
fn decimal(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}
