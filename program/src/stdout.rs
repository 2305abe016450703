//! Standard output of programs whose reader may close the pipe early.

use std::fmt::Display;
use std::io::{self, Write};

/// True if a write failed only because the reader closed the pipe, as `head` does once it has read enough.
pub fn is_closed_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Prints `text` and flushes it. A reader that has closed the pipe is no error.
pub fn print(text: impl Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match write!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if !is_closed_pipe(&error) => Err(error),
        _ => Ok(()),
    }
}
