//! Simulated fleets, experiments, calculators and benchmarks of Evenhand.
//!
//! The rooms, each of which uses only those above it:
//!
//! | room | contents |
//! |---|---|
//! | [`data`] | data sets: loaders, pools of samples, their partition among nodes |
//! | [`scenario`] | corruptions, streams of samples, behaviour of nodes |
//! | [`baseline`] | strategies by name: Evenhand and the baselines it is compared with |
//! | [`sim`] | runs over a transport, their recorder, and the online performance of models |
//! | [`experiment`] | setups, trials, variants, tables and the paper |
//! | [`cli`] | the command line; the binary `evenhand-fleet` is a thin shell over [`cli::Cli`] |

pub mod baseline;
pub mod cli;
pub mod data;
pub mod experiment;
mod names;
pub mod scenario;
pub mod sim;

pub use cli::FleetError;
