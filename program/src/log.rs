//! Log lines on stderr, as text or as JSON.

use std::io::IsTerminal;

use serde::{Deserialize, Serialize};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Log lines on stderr; the variable RUST_LOG takes precedence over the level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// The least severe level that is written.
    pub level: LogLevel,
    /// The form of a line.
    pub format: LogFormat,
}

impl LogConfig {
    /// This file, for default files that are assembled from the sections' types.
    pub const SOURCE: &str = include_str!("log.rs");
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: LogLevel::Info, format: LogFormat::Text }
    }
}

/// The severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "known by name")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> LevelFilter {
        match level {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Trace => LevelFilter::TRACE,
        }
    }
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Words for people; coloured on a terminal unless `NO_COLOR` is set.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging for the whole process. The variable `RUST_LOG` (`debug`, or `info,evenhand_link=trace`) takes
/// precedence over the configured level.
pub fn init(config: &LogConfig) {
    let environment = std::env::var("RUST_LOG").ok();
    let filter = filter(environment.as_deref(), config.level);
    let registry = tracing_subscriber::registry().with(filter);
    let lines = fmt::layer().with_writer(std::io::stderr);
    match config.format {
        LogFormat::Text => registry.with(lines.with_ansi(is_coloured()).with_target(false)).init(),
        LogFormat::Json => registry.with(lines.with_ansi(false).json()).init(),
    }
}

/// A malformed variable is as good as none: a log is wanted in any case.
fn filter(environment: Option<&str>, level: LogLevel) -> Targets {
    environment
        .filter(|directives| !directives.trim().is_empty())
        .and_then(|directives| directives.parse().ok())
        .unwrap_or_else(|| Targets::new().with_default(LevelFilter::from(level)))
}

fn is_coloured() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn the_environment_takes_precedence_over_the_configuration() {
        let configured = filter(None, LogLevel::Warn);
        assert!(configured.would_enable("evenhand_link", &Level::WARN));
        assert!(!configured.would_enable("evenhand_link", &Level::INFO));
        let chosen = filter(Some("info,evenhand_link=trace"), LogLevel::Warn);
        assert!(chosen.would_enable("evenhand_link", &Level::TRACE));
        assert!(!chosen.would_enable("evenhand_node", &Level::DEBUG));
    }

    #[test]
    fn empty_and_malformed_variables_are_ignored() {
        for variable in ["", " ", "a=b=c", "evenhand_link=loud"] {
            assert_eq!(filter(Some(variable), LogLevel::Info), filter(None, LogLevel::Info), "{variable}");
        }
    }
}
