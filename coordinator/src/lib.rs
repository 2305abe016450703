//! The coordinator of an Evenhand federation: the program around the state machine of `evenhand-federation`.
//!
//! | module | content |
//! |---|---|
//! | [`shell`] | the run loop: link, timers and persistence around the state machine |
//! | [`store`] | the federation on disk: state, round log, audit |
//! | [`control`] | the operator's control socket |
//! | [`joining`] | names, keys, invitations |
//! | [`view`] | what is shown of a federation: a pure read model |
//! | [`dashboard`] | the view over HTTP: page, JSON, metrics |
//! | [`config`] | the configuration file |
//! | [`open_files`] | the limit on open files |

pub mod config;
pub mod control;
pub mod dashboard;
pub mod joining;
pub mod open_files;
pub mod shell;
pub mod store;
pub mod view;
