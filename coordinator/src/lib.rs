//! The coordinator of an Evenhand federation: contributions, stop rule, incentives.
//!
//! | module | what |
//! |---|---|
//! | [`fairness`] | pure functions: contributions, stop rules, sampling |
//! | [`federation`] | the state machine: no I/O, no clock |
//! | [`broker`] | the MQTT broker that comes with the coordinator |
//! | [`shell`] | link, timers and durable state around the state machine |
//! | [`config`] | the configuration file |

pub mod broker;
pub mod config;
pub mod fairness;
pub mod federation;
pub mod shell;
