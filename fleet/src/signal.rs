//! Ctrl-C and the like.

use evenhand_protocol::exit::Exit;
use tokio::signal::unix::{SignalKind, signal};

use crate::transport::Interrupt;

/// Raises `interrupt` at the first SIGINT or SIGTERM, so that what was reached is shown; the second ends the program.
pub(crate) async fn watch(interrupt: Interrupt) {
    let (Ok(mut interrupted), Ok(mut terminated)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return; // Without handlers the signals do what they always do.
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
