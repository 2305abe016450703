//! The coordinator of an Evenhand federation: contributions, stop rule, incentives.
//!
//! | module | what |
//! |---|---|
//! | [`fairness`] | pure functions: contributions, stop rules, sampling |
//! | [`federation`] | the state machine: no I/O, no clock |
//! | [`broker`] | the MQTT broker that comes with the coordinator |
//! | [`shell`] | link and timers around the state machine |
//! | [`store`] | the federation on disk: state, round log, audit |
//! | [`control`] | how an operator steers a running coordinator |
//! | [`view`] | what is shown of a federation: a pure read model |
//! | [`dashboard`] | the view over HTTP: page, JSON, metrics |
//! | [`report`] | a run as one HTML file |
//! | [`config`] | the configuration file |

pub mod broker;
pub mod config;
pub mod control;
pub mod dashboard;
pub mod fairness;
pub mod federation;
pub mod report;
pub mod shell;
pub mod store;
pub mod strategy;
pub mod view;
