//! `evenhand-node probe`: the first readings of the source, and what they become.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::config::{MeterQuantity, NodeConfig};
use crate::reading::{InputBatch, Reading, SourcePosition};
use crate::shell::ReadingWatch;
use crate::source::{Intake, RawInput, Source, SourceContext, SourceError, now_ms};
use crate::time_zone::LocalTimeZone;

/// Readings that are shown.
const SHOWN: usize = 3;
/// Readings that are looked at: a file has them at once, and its interval is then known better.
const LOOKED_AT: usize = 64;

/// What the source delivers within `wait`, as text; a sentence with the remedy if it is nothing.
pub(super) fn probe(config: &NodeConfig, wait: Duration) -> Result<String, String> {
    let place = config.source.kind().place();
    let context = SourceContext { config, name: SourceContext::PROBE, position: SourcePosition::default() };
    let mut source = config
        .source
        .kind()
        .open(&context)
        .map_err(|error| format!("the source does not open: {error}; check that {place} is right"))?;
    let (readings, rows, ended) = collect(source.as_mut(), wait);
    let first = source.intake().map(Intake::first).unwrap_or_default();
    if readings.is_empty() && rows == 0 && first.is_empty() {
        return Err(match ended {
            Some(error) => format!("nothing came from {place}: {error}"),
            None => format!(
                "nothing came from {place} within {} s; check that it sends and that this is its address, or wait longer with \
                 --wait SECONDS",
                wait.as_secs()
            ),
        });
    }
    let mut text = format!("source     {place}\n");
    if rows > 0 || config.rows.is_some() {
        inputs(&mut text, first, |_| "labelled row".to_owned());
        line(&mut text, "rows", &format!("{rows} labelled rows came"));
    } else {
        let watch = ReadingWatch::new(config.window.step_s, false);
        if first.is_empty() {
            for reading in readings.iter().take(SHOWN) {
                line(&mut text, "reading", &became(config, &watch, *reading));
            }
        }
        inputs(&mut text, first, |reading| became(config, &watch, reading));
        line(&mut text, "step", &step(config, readings));
    }
    if let Some(error) = ended {
        line(&mut text, "then", &error.to_string());
    }
    Ok(text)
}

/// Readings, number of rows, and the error that came after them.
type Collected = (Vec<Reading>, usize, Option<SourceError>);

fn collect(source: &mut dyn Source, wait: Duration) -> Collected {
    let until = Instant::now() + wait;
    let (mut readings, mut rows) = (Vec::new(), 0);
    loop {
        match source.read(LOOKED_AT) {
            Ok(InputBatch::Readings(more)) => readings.extend(more),
            Ok(InputBatch::Rows(more)) => rows += more.len(),
            Err(SourceError::Ended) => return (readings, rows, None),
            Err(error) => return (readings, rows, Some(error)),
        }
        let seen = source.intake().map_or(0, |intake| intake.first().len());
        if seen.max(readings.len()).max(rows) >= SHOWN || Instant::now() > until {
            return (readings, rows, None);
        }
    }
}

/// The inputs as they came, and what they become.
fn inputs(text: &mut String, first: &[RawInput], became: impl Fn(Reading) -> String) {
    for RawInput { text: raw, result } in first {
        line(text, "input", raw);
        match result {
            Ok(reading) => line(text, "  becomes", &became(*reading)),
            Err(reason) => line(text, "  kept out", reason),
        }
    }
}

/// What a reading becomes: value, local time and step, or the reason why it is kept out.
fn became(config: &NodeConfig, watch: &ReadingWatch, reading: Reading) -> String {
    let zone = &config.window.time_zone;
    let Reading { time_ms, value } = reading;
    let at = format!("{value}{} at {}", unit(config), local(time_ms, zone));
    match watch.refusal(reading, now_ms()) {
        Some(reason) => format!("{at}, kept out: {reason}"),
        None => {
            let step_ms = i64::from(config.window.step_s) * 1000;
            let end_ms =
                time_ms.div_euclid(step_ms).saturating_add(i64::from(time_ms.rem_euclid(step_ms) != 0));
            format!("{at}, kept in the step that ends at {}", local(end_ms.saturating_mul(step_ms), zone))
        }
    }
}

/// The unit that the owner's section gives, and what a counter counts.
fn unit(config: &NodeConfig) -> String {
    let unit = config.owner.as_ref().map(|owner| format!(" {}", owner.unit)).unwrap_or_default();
    match config.window.quantity {
        MeterQuantity::Level => unit,
        MeterQuantity::Counter => " in total (window.quantity = \"counter\")".into(),
    }
}

/// The interval of the readings, and whether it fits the step.
fn step(config: &NodeConfig, readings: Vec<Reading>) -> String {
    let mut watch = ReadingWatch::new(config.window.step_s, false);
    watch.note(&InputBatch::Readings(readings));
    match watch.interval_ms() {
        None => format!(
            "window.step_s = {}; how often readings come is not known from one time",
            config.window.step_s
        ),
        Some(interval_ms) => watch.proposal(interval_ms).unwrap_or_else(|| {
            format!(
                "window.step_s = {} fits readings every {} s",
                config.window.step_s,
                interval_ms as f64 / 1000.0
            )
        }),
    }
}

/// `2024-05-01 12:30:00 Europe/London`.
fn local(time_ms: i64, zone: &LocalTimeZone) -> String {
    match Timestamp::from_millisecond(time_ms.saturating_add(zone.offset_ms(time_ms))) {
        Ok(shown) => {
            let shown = TimeZone::UTC.to_datetime(shown);
            format!("{} {} {}", shown.date(), shown.time(), String::from(zone.clone()))
        }
        Err(_) => format!("{time_ms} ms after 1970"),
    }
}

fn line(text: &mut String, name: &str, content: &str) {
    let _infallible = writeln!(text, "{name:<10} {content}");
}
