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
//! | [`leak`] | reconstruction of readings from updates |
//! | [`cli`] | the command line; the binary `evenhand-fleet` is a thin shell over [`cli::Cli`] |
//!
//! `tests/check_modules` holds them to that order. A demo within this process, in virtual time:
//!
//! ```
//! use evenhand_fleet::sim::demo::{self, DemoConfig, DemoPlan, Transport};
//! use evenhand_fleet::sim::progress::{ProgressStyle, RunProgress};
//! use evenhand_fleet::sim::{self, Interrupt};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = DemoConfig { nodes: 4, rounds: 10, transport: Transport::Memory, ..DemoConfig::default() };
//! let plan = DemoPlan::new(&config)?;
//! let progress = RunProgress::new(std::io::sink(), ProgressStyle::Silent);
//! let run = demo::simulate(&plan, &sim::runtime()?, &Interrupt::default(), progress)?;
//! let figures = run.figures();
//! assert_eq!((figures.rounds, figures.nodes.len()), (10, 4));
//! println!("{:?}", figures.online_loss);
//! # Ok(())
//! # }
//! ```

pub mod baseline;
pub mod cli;
pub mod data;
pub mod experiment;
pub mod leak;
mod names;
pub mod scenario;
pub mod sim;

pub use cli::FleetError;
