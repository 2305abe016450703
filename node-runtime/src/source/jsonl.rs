//! JSON lines on stdin or in a file.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::thread;

use serde::{Deserialize, Serialize};

use super::json::Fields;
use super::lines::Lines;
use super::pump::{Pump, Pumped};
use super::sieve::Sieve;
use super::tail::{Next, Tail};
use super::time::TimeFormat;
use super::{PATIENCE, Source, SourceError};
use crate::reading::{Intake, Position};

/// Where the lines are and what they mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JsonlSettings {
    /// The file; `-` is stdin.
    pub path: PathBuf,
    /// The path of the value within a line, e.g. `energy.power`; empty where a line is a plain number.
    pub value: String,
    /// The path of the time within a line; empty where the time of arrival counts.
    pub time: String,
    /// How times are written.
    pub time_format: TimeFormat,
    /// Local time minus UTC, for times without an offset.
    pub utc_offset_s: i32,
    /// Whether a file still grows; if not, the source ends with it.
    pub follow: bool,
}

impl Default for JsonlSettings {
    fn default() -> Self {
        Self {
            path: "-".into(),
            value: "value".into(),
            time: "time".into(),
            time_format: TimeFormat::Iso,
            utc_offset_s: 0,
            follow: true,
        }
    }
}

impl JsonlSettings {
    /// The first setting that makes no sense, with the remedy.
    pub fn check(&self) -> Result<(), String> {
        match self.path.as_os_str().is_empty() {
            true => Err("source.path is empty; name the file, or \"-\" for stdin".into()),
            false => Ok(()),
        }
    }
}

/// JSON lines as readings.
#[derive(Debug)]
pub struct Jsonl {
    fields: Fields,
    stream: Stream,
    sieve: Sieve,
}

#[derive(Debug)]
enum Stream {
    File(Tail, bool),
    Pipe(Pipe),
}

/// A stream that cannot be asked whether it has something to say.
#[derive(Debug)]
struct Pipe {
    blocks: Pump<io::Result<Vec<u8>>>,
    lines: Lines,
}

impl Jsonl {
    /// Opens the file or stdin, and goes on behind `position`.
    pub fn open(settings: JsonlSettings, position: Position) -> Result<Self, SourceError> {
        let fields =
            Fields::new(&settings.value, &settings.time, settings.time_format, settings.utc_offset_s);
        let stream = if settings.path == Path::new("-") {
            Stream::Pipe(Pipe::start(io::stdin())?)
        } else {
            Stream::File(Tail::open(settings.path, settings.follow)?, settings.follow)
        };
        Ok(Self { fields, stream, sieve: Sieve::behind(position) })
    }
}

impl Source for Jsonl {
    fn read(&mut self, count: usize) -> Result<Intake, SourceError> {
        let mut readings = Vec::new();
        while readings.len() < count {
            let line = match &mut self.stream {
                Stream::Pipe(pipe) => match pipe.next(readings.is_empty()) {
                    // What was read goes first; the end is met again by the next call.
                    Err(_) if !readings.is_empty() => None,
                    line => line?,
                },
                Stream::File(tail, follow) => match tail.next()? {
                    Next::Line(line) => Some(line),
                    Next::Restart => {
                        self.sieve.expect_known(true);
                        continue;
                    }
                    Next::End if *follow => {
                        if readings.is_empty() {
                            thread::sleep(PATIENCE);
                        }
                        None
                    }
                    Next::End if readings.is_empty() => return Err(SourceError::Ended),
                    Next::End => None,
                },
            };
            let Some(line) = line else { break };
            if !line.trim().is_empty() {
                readings.extend(self.sieve.pass(self.fields.reading(&line)));
            }
        }
        Ok(Intake::Readings(readings))
    }

    fn malformed(&self) -> u64 {
        let dropped = match &self.stream {
            Stream::File(tail, _) => tail.dropped(),
            Stream::Pipe(pipe) => pipe.lines.dropped,
        };
        self.sieve.malformed() + dropped
    }
}

impl Pipe {
    fn start(mut reader: impl Read + Send + 'static) -> Result<Self, SourceError> {
        let read = move |sender: SyncSender<io::Result<Vec<u8>>>| {
            let mut block = [0; 8192];
            loop {
                let read = reader.read(&mut block).map(|count| block[..count].to_vec());
                let over = !matches!(&read, Ok(bytes) if !bytes.is_empty());
                if sender.send(read).is_err() || over {
                    return;
                }
            }
        };
        Ok(Self { blocks: Pump::start("stdin", 4, read)?, lines: Lines::default() })
    }

    /// The next line; waits for it only if told to.
    fn next(&mut self, wait: bool) -> Result<Option<String>, SourceError> {
        loop {
            if let Some(line) = self.lines.next() {
                return Ok(Some(line));
            }
            match self.blocks.next(wait) {
                Pumped::Item(Ok(block)) if !block.is_empty() => self.lines.push(&block),
                Pumped::Item(Err(cause)) => return Err(SourceError::File { path: "stdin".into(), cause }),
                Pumped::Nothing => return Ok(None),
                Pumped::Item(Ok(_)) | Pumped::Over => {
                    return self.lines.last().map(Some).ok_or(SourceError::Ended);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    fn values(intake: Intake) -> Vec<(i64, f64)> {
        match intake {
            Intake::Readings(readings) => {
                readings.iter().map(|reading| (reading.time_ms, reading.value)).collect()
            }
            Intake::Rows(_) => panic!("rows"),
        }
    }

    fn settings(path: PathBuf, follow: bool) -> JsonlSettings {
        JsonlSettings { path, time_format: TimeFormat::UnixMs, follow, ..Default::default() }
    }

    #[test]
    fn a_growing_file_with_rubbish_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("load.jsonl");
        fs::write(&path, "{\"time\":1,\"value\":1.5}\nrubbish\n\n{\"time\":2,\"val").unwrap();
        let mut source = Jsonl::open(settings(path.clone(), true), Position::default()).unwrap();
        assert_eq!(values(source.read(9).unwrap()), [(1, 1.5)]);
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"ue\":2.5}\n{\"time\":3,\"value\":9}\n")
            .unwrap();
        assert_eq!(values(source.read(9).unwrap()), [(2, 2.5), (3, 9.0)]);
        assert_eq!(source.malformed(), 1);
        let known = Position { newest_ms: Some(2), rows: 0 };
        let mut finished = Jsonl::open(settings(path, false), known).unwrap();
        assert_eq!(values(finished.read(9).unwrap()), [(3, 9.0)]);
        assert!(matches!(finished.read(9), Err(SourceError::Ended)));
    }

    #[test]
    fn a_pipe_is_read_as_it_fills_and_ends_with_its_writer() {
        let (reader, mut writer) = io::pipe().unwrap();
        let fields = Fields::new("value", "time", TimeFormat::UnixMs, 0);
        let stream = Stream::Pipe(Pipe::start(reader).unwrap());
        let mut source = Jsonl { fields, stream, sieve: Sieve::behind(Position::default()) };
        writer.write_all(b"{\"time\":1,\"value\":1}\n{\"time\":2,").unwrap();
        assert_eq!(values(source.read(9).unwrap()), [(1, 1.0)]);
        writer.write_all(b"\"value\":2}\n{\"time\":3,\"value\":3}").unwrap();
        drop(writer);
        let mut rest = Vec::new();
        let ended = loop {
            match source.read(9) {
                Ok(intake) => rest.extend(values(intake)),
                Err(error) => break error,
            }
        };
        assert!(matches!(ended, SourceError::Ended));
        assert_eq!(rest, [(2, 2.0), (3, 3.0)]);
    }
}
