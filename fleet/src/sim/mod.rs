//! Simulated runs: the production coordinator and nodes over a transport, recorded and evaluated round by round.
//!
//! | module | contents |
//! |---|---|
//! | [`agent_node`] | a node that acts in an environment |
//! | [`demo`] | the demo: simulated households, planned from a few settings |
//! | [`fleet`] | a fleet of households before it runs |
//! | [`memory`] | transport within this process, in virtual time |
//! | [`mqtt`], [`process`] | transport over real MQTT, every node a task or a process |
//! | [`recorder`] | the recorder of a run's rounds; a [`RecordedRun`] has its figures and its report |
//! | [`online`] | the online performance of held models, on clean samples |
//! | [`progress`] | the progress line on stderr |

pub mod agent_node;
pub mod demo;
mod error;
mod figures;
pub mod fleet;
mod interrupt;
pub mod memory;
pub mod mqtt;
pub mod online;
pub mod process;
pub mod progress;
mod recorded_run;
pub mod recorder;
mod report_source;
mod rules;
mod run_result;
mod runtime;

pub use error::SimulationError;
pub use figures::{NodeFigures, NormalityFigures, RunFigures, rho_standing};
pub use interrupt::Interrupt;
pub use recorded_run::{RecordedRun, RunDescription, SimulatedNode};
pub(crate) use report_source::skill_text;
pub(crate) use rules::simulated_federation;
pub use run_result::{OnRound, RunCost, RunEnd, RunResult};
pub use runtime::runtime;
