//! `evenhand-fleet experiment --find-rate`.

use std::io::{self, Write};

use evenhand_program::exit::Exit;

use super::FleetError;
use super::experiment::ExperimentArgs;
use crate::experiment::rate::{self, RateFigures};
use crate::experiment::setup::Setup;
use crate::experiment::table::seeds;
use crate::experiment::variant::Variant;

/// Runs FedAvg with every node at several learning rates, and prints which scores best.
pub(super) fn run(args: &ExperimentArgs) -> Result<Exit, FleetError> {
    let mut args = args.clone();
    // Every node takes part, however few there are.
    args.overrides.k = args.overrides.nodes;
    let base = args.setup(Variant::Fedavg)?;
    let trials = args.trials.trials;
    let wanted: Vec<Setup> = rate::setups(&base).iter().flat_map(|setup| seeds(setup, trials)).collect();
    let Some(records) = args.trials.records(&wanted)? else { return Ok(Exit::Interrupted) };
    let figures = RateFigures::of(&base, trials, &records);
    let text = if args.trials.json {
        serde_json::to_string(&figures).map_err(|error| FleetError::Output(error.into()))? + "\n"
    } else {
        figures.text()
    };
    io::stdout().lock().write_all(text.as_bytes()).map_err(FleetError::Output)?;
    // A rate at which the model diverges is an answer, no failure.
    Ok(if figures.best_factor.is_some() { Exit::Ok } else { records.exit() })
}
