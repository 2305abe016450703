//! `evenhand-fleet`: a thin shell over the library.

use std::process::ExitCode;

use clap::Parser;
use evenhand_fleet::cli::Cli;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("evenhand-fleet: {error}");
            ExitCode::from(error.exit())
        }
    }
}
