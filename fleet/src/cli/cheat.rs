//! `evenhand-fleet cheat`.

use std::io::{self, Write};

use evenhand_program::exit::Exit;
use serde::Serialize;

use super::experiment::ExperimentArgs;
use super::{FleetError, signal};
use crate::data;
use crate::experiment::cheat::{self, CheatRow};
use crate::sim::{self, Interrupt};

/// Examples of use.
pub(super) const HELP: &str = "\
Examples:
  evenhand-fleet cheat                                     synthetic data, twelve nodes
  evenhand-fleet cheat --strategy evenhand,paper --trials 3
  evenhand-fleet cheat --dataset mnist --data DIR --nodes 12 --k 5
  evenhand-fleet cheat --nodes 20 --share 0.3              six of twenty collude

gain   probability of receiving the model, divided by that of honest work with the same data: the mean over
       trials, its standard error, and the largest of a trial
rank   place of the attacker by standing, 1 for the best
order  Kendall's tau of the honest nodes' standings with and without the attack: the mean, and the lowest of a
       trial";

/// Flags of `evenhand-fleet cheat`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CheatArgs {
    /// Share of the nodes that attack together, in the rows of several
    #[arg(long, default_value_t = 0.25, value_name = "SHARE", value_parser = share)]
    pub share: f64,
    /// Flags of every experiment.
    #[command(flatten)]
    pub experiment: ExperimentArgs,
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| format!("{text} is no number"))?;
    if share > 0.0 && share < 1.0 { Ok(share) } else { Err("choose a share above 0 and below 1".into()) }
}

/// The attacks on one strategy.
#[derive(Serialize)]
struct CheatTable {
    strategy: String,
    rows: Vec<CheatRow>,
}

/// Runs every attack on every strategy and prints what each gained.
pub(super) fn run(cheat: &CheatArgs) -> Result<Exit, FleetError> {
    let args = &cheat.experiment;
    let folder = data::folder(args.trials.data.clone());
    let load = |setup: &crate::experiment::setup::Setup| {
        Ok(data::load(setup.dataset, folder.as_deref(), &setup.scenario().data_request())?)
    };
    let (runtime, interrupt) = (sim::runtime()?, Interrupt::default());
    runtime.spawn(signal::watch(interrupt.clone()));
    let mut tables = Vec::new();
    for &variant in args.strategy.0.iter().filter(|variant| variant.is_ours()) {
        let setup = args.setup(variant)?;
        let mut progress = |done: usize, all: usize| {
            if !args.trials.no_progress {
                eprint!("\r{}: {done} of {all} trials", variant.name());
            }
        };
        let rows = cheat::run(&setup, args.trials.trials, cheat.share, &load, &interrupt, &mut progress)?;
        if !args.trials.no_progress {
            eprintln!();
        }
        tables.push(CheatTable { strategy: variant.name(), rows });
    }
    let text = if args.trials.json {
        serde_json::to_string(&tables).map_err(|error| FleetError::Output(error.into()))? + "\n"
    } else {
        tables.iter().map(text).collect()
    };
    io::stdout().lock().write_all(text.as_bytes()).map_err(FleetError::Output)?;
    Ok(if interrupt.is_raised() { Exit::Interrupted } else { Exit::Ok })
}

fn text(table: &CheatTable) -> String {
    let mut text = format!(
        "{}\n{:24}{:>10}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}\n",
        table.strategy, "attack", "attackers", "gain", "±", "max", "rank", "order", "lowest"
    );
    for row in &table.rows {
        let CheatRow { attack, attackers, gain, gain_error, gain_max, rank, order, order_min } = row;
        let error = gain_error.map_or("–".into(), |error| format!("{error:.2}"));
        text += &format!("{attack:24}{attackers:>10}{gain:>8.2}{error:>8}{gain_max:>8.2}{rank:>8.1}");
        text += &format!("{order:>8.2}{order_min:>8.2}\n");
    }
    text + "\n"
}
