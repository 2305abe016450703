//! The lines of a file that is finished or still grows.
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

use std::fs::{File, Metadata};
use std::io::{self, Seek};
use std::path::PathBuf;

use super::SourceError;
use super::lines::Lines;

/// Follows a file across half-written lines, truncation and replacement.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    follow: bool,
    file: File,
    lines: Lines,
}

/// The next event of a file.
pub(super) enum TailEvent {
    Line(String),
    /// The file starts over, with its header.
    Restart,
    /// The end of the file, for now if it still grows.
    End,
}

impl Tail {
    /// Opens the file; with `follow` it still grows.
    pub(super) fn open(path: PathBuf, follow: bool) -> Result<Self, SourceError> {
        match File::open(&path) {
            Ok(file) => Ok(Self { path, follow, file, lines: Lines::default() }),
            Err(cause) => Err(SourceError::File { path, cause }),
        }
    }

    pub(super) fn next(&mut self) -> Result<TailEvent, SourceError> {
        self.advance().map_err(|cause| SourceError::File { path: self.path.clone(), cause })
    }

    /// Lines that were too long.
    pub(super) fn dropped(&self) -> u64 {
        self.lines.dropped
    }

    fn advance(&mut self) -> io::Result<TailEvent> {
        loop {
            if let Some(line) = self.lines.next() {
                return Ok(TailEvent::Line(line));
            }
            if self.lines.fill(&mut self.file)? > 0 {
                continue;
            }
            if !self.follow {
                return Ok(self.lines.last().map_or(TailEvent::End, TailEvent::Line));
            }
            if !self.is_replaced()? {
                return Ok(TailEvent::End);
            }
            self.file = File::open(&self.path)?;
            self.lines.restart();
            return Ok(TailEvent::Restart);
        }
    }

    /// Another file, or the same one truncated, is at the path now.
    fn is_replaced(&mut self) -> io::Result<bool> {
        let there = match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other?,
        };
        Ok(there.len() < self.file.stream_position()? || is_another(&there, &self.file.metadata()?))
    }
}

#[cfg(unix)]
fn is_another(there: &Metadata, open: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (there.dev(), there.ino()) != (open.dev(), open.ino())
}

#[cfg(not(unix))]
fn is_another(_: &Metadata, _: &Metadata) -> bool {
    false
}
