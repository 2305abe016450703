//! The coordinator of an Evenhand federation: contributions, stop rule, incentives.
//!
//! | module | what |
//! |---|---|
//! | [`shell`] | link and timers around the state machine |
//! | [`store`] | the federation on disk: state, round log, audit |
//! | [`control`] | how an operator steers a running coordinator |
//! | [`view`] | what is shown of a federation: a pure read model |
//! | [`dashboard`] | the view over HTTP: page, JSON, metrics |
//! | [`config`] | the configuration file |

pub mod config;
pub mod control;
pub mod dashboard;
pub mod shell;
pub mod store;
pub mod view;
