//! `evenhand-fleet`: a thin shell over the library.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use evenhand_fleet::cli::Cli;
use evenhand_protocol::exit::Exit;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

fn main() -> ExitCode {
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into()).from_env_lossy();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
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
    ExitCode::from(u8::from(exit))
}
