//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write};

/// The `Content-Type` of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A value that only grows while the program runs.
    Counter,
    /// A value that goes up and down.
    Gauge,
}

impl MetricKind {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// Metrics of one program, under one prefix.
#[derive(Debug, Clone)]
pub struct MetricsText {
    prefix: &'static str,
    /// `name="value"` pairs that every sample carries.
    labels: Vec<String>,
    text: String,
}

impl MetricsText {
    /// No metrics yet; the name of each will begin with `prefix`.
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, labels: Vec::new(), text: String::new() }
    }

    /// The same, with a label that every further sample carries.
    pub fn with_label(mut self, name: &str, value: impl Display) -> Self {
        self.labels.push(label(name, &value));
        self
    }

    /// Begins a metric; its samples follow.
    pub fn family(&mut self, name: &str, kind: MetricKind, help: &str) {
        let (prefix, help, kind) = (self.prefix, escaped(help, false), kind.name());
        self.push(format_args!("# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} {kind}\n"));
    }

    /// Adds a sample of the metric that was begun last.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        let own = labels.iter().map(|(name, value)| label(name, *value));
        let labels = self.labels.iter().cloned().chain(own).collect::<Vec<_>>().join(",");
        let prefix = self.prefix;
        match labels.is_empty() {
            true => self.push(format_args!("{prefix}{name} {value}\n")),
            false => self.push(format_args!("{prefix}{name}{{{labels}}} {value}\n")),
        }
    }

    /// Adds a metric with one sample.
    pub fn single(&mut self, name: &str, kind: MetricKind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// Adds a gauge if its value is known: a substitute would be plotted and alarmed on.
    pub fn optional_gauge(&mut self, name: &str, help: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.single(name, MetricKind::Gauge, help, value);
        }
    }

    /// All metrics so far.
    pub fn into_text(self) -> String {
        self.text
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        let _infallible = self.text.write_fmt(text);
    }
}

fn label(name: &str, value: &dyn Display) -> String {
    format!("{name}=\"{}\"", escaped(&value.to_string(), true))
}

/// Backslashes and line feeds are escaped everywhere, quotation marks in label values alone.
fn escaped(text: &str, quoted: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quoted { text.replace('"', "\\\"") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_and_samples_are_written_line_by_line() {
        let mut metrics = MetricsText::new("evenhand_coordinator_");
        metrics.family("nodes", MetricKind::Gauge, "Nodes by state.");
        metrics.sample("nodes", &[("state", &"enrolled")], 12);
        metrics.single("round_seconds_total", MetricKind::Counter, "Seconds.", 0.25);
        metrics.optional_gauge("loss", "Loss.", None);
        assert_eq!(
            metrics.into_text(),
            "# HELP evenhand_coordinator_nodes Nodes by state.\n\
             # TYPE evenhand_coordinator_nodes gauge\n\
             evenhand_coordinator_nodes{state=\"enrolled\"} 12\n\
             # HELP evenhand_coordinator_round_seconds_total Seconds.\n\
             # TYPE evenhand_coordinator_round_seconds_total counter\n\
             evenhand_coordinator_round_seconds_total 0.25\n"
        );
    }

    #[test]
    fn label_values_and_help_texts_are_escaped() {
        let mut metrics = MetricsText::new("x_").with_label("name", "a\"b\\c\nd");
        metrics.family("y", MetricKind::Gauge, "a\"b\\c\nd");
        metrics.sample("y", &[("z", &"1")], 1);
        assert_eq!(
            metrics.into_text(),
            "# HELP x_y a\"b\\\\c\\nd\n# TYPE x_y gauge\nx_y{name=\"a\\\"b\\\\c\\nd\",z=\"1\"} 1\n"
        );
    }
}
