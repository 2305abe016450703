//! SIGINT and SIGTERM.

use evenhand_program::exit::Exit;
use tokio::signal::unix::{SignalKind, signal};

use crate::sim::Interrupt;

/// Raises `interrupt` at the first SIGINT or SIGTERM, so that results so far are shown; the second ends the program.
pub(super) async fn watch(interrupt: Interrupt) {
    let (Ok(mut interrupted), Ok(mut terminated)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return; // Without handlers the signals end the program.
    };
    for _ in 0..2 {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
        if interrupt.is_raised() {
            std::process::exit(u8::from(Exit::Interrupted).into());
        }
        interrupt.raise();
    }
}
