//! Forecasts in InfluxDB's line protocol.

use std::fmt::Write;

use crate::forecast::ForecastVector;

/// One line for each lead: `evenhand_forecast,federation=…,node=… p10=…,p50=…,p90=… TIME`, the time being the end of the
/// step in nanoseconds. A newer forecast for a step replaces the older one.
pub(super) fn lines(federation: &str, node: &str, forecast: &ForecastVector) -> String {
    let mut text = String::new();
    for (index, values) in forecast.values.iter().enumerate() {
        let fields = forecast.levels.iter().zip(values).filter(|(_, value)| value.is_finite());
        let fields: Vec<String> = fields
            .map(|(level, value)| format!("{}={value}", super::payload::quantile_name(*level)))
            .collect();
        if fields.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "evenhand_forecast,federation={federation},node={node} {} {}",
            fields.join(","),
            i128::from(forecast.for_ms(index)) * 1_000_000
        );
    }
    text
}
