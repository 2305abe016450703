//! Parts that the programs of Evenhand share.
//!
//! | module | content | feature |
//! |---|---|---|
//! | [`entropy`] | secret random bytes of the system | |
//! | [`exit`] | exit codes | |
//! | [`stdout`] | output that survives a closed pipe | |
//! | [`suggest`] | "did you mean" | |
//! | [`notify`] | readiness and watchdog messages to systemd | |
//! | [`prometheus`] | the text format of Prometheus | |
//! | [`log_rate`] | log lines of one kind, limited by time | |
//! | [`private`] | files and folders for their owner alone | |
//! | [`secret_file`] | files with secrets that others can read or guess | |
//! | `log` | log lines on stderr, as text or JSON | `log` |
//! | `atomic` | files that are replaced as a whole | `atomic` |
//! | `config` | TOML files: unknown keys are errors, defaults are printed | `config` |
//!
//! ```
//! use evenhand_program::prometheus::{MetricKind, MetricsText};
//!
//! let mut metrics = MetricsText::new("evenhand_node_").with_label("node", "meter-7");
//! metrics.single("round", MetricKind::Gauge, "Newest round.", 12);
//! assert!(metrics.into_text().ends_with("evenhand_node_round{node=\"meter-7\"} 12\n"));
//! ```

#[cfg(feature = "atomic")]
pub mod atomic;
#[cfg(feature = "config")]
pub mod config;
pub mod entropy;
pub mod exit;
#[cfg(feature = "log")]
pub mod log;
pub mod log_rate;
#[cfg(target_os = "linux")]
pub mod notify;
pub mod private;
pub mod prometheus;
pub mod secret_file;
pub mod stdout;
pub mod suggest;
