//! The `[log]` section: log lines on stderr.

use evenhand_program::log::LogConfig;

use super::section::{ConfigKey, Keys, SectionCheck, Shown};
use super::{NodeConfig, NodeConfigError};

impl Keys for LogConfig {
    const ABOUT: &'static [&'static str] = &[" Log lines on stderr."];
    const KEYS: &'static [ConfigKey] = &[
        ConfigKey {
            name: "level",
            explanation: &[r#" "error", "warn", "info", "debug" or "trace"."#],
            shown: Shown::Default,
        },
        ConfigKey {
            name: "format",
            explanation: &[r#" "text", or "json" for one object a line."#],
            shown: Shown::Default,
        },
    ];
}

impl SectionCheck for LogConfig {
    fn check(&self, _name: &str, _whole: &NodeConfig) -> Result<(), NodeConfigError> {
        Ok(())
    }
}
