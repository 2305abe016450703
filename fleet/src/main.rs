//! `evenhand-fleet`: a thin shell over the library.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use evenhand_fleet::cli::Cli;
use evenhand_program::exit::Exit;
use evenhand_program::log::{self, LogConfig, LogLevel};

fn main() -> ExitCode {
    log::init(&LogConfig { level: LogLevel::Warn, ..LogConfig::default() });
    let exit = match Cli::try_parse() {
        Ok(cli) => cli.run().unwrap_or_else(|error| {
            // A reader that has read enough, as `head` does, is no failure.
            if error.is_reader_gone() {
                return Exit::Ok;
            }
            // If the terminal is gone, the exit code remains.
            let _unseen = writeln!(std::io::stderr(), "evenhand-fleet: {error}");
            error.exit()
        }),
        Err(error) => {
            // Help and version come this way too; they go to stdout and are no failure.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
            let _ = error.print();
            exit
        }
    };
    exit.into()
}
