//! JSON lines on stdin or in a file.
#![cfg(feature = "jsonl")]

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::thread;

use super::background_reader::{BackgroundReader, Fetched};
use super::duplicate_filter::DuplicateFilter;
use super::json::JsonFields;
use super::lines::Lines;
use super::tail::{Tail, TailEvent};
use super::time::{TimeFormat, TimeReader};
use super::{Intake, READ_TIMEOUT, Source, SourceContext, SourceError, SourceKind};
use crate::config::section::section;
use crate::reading::{InputBatch, SourcePosition};
use crate::time_zone::LocalTimeZone;

section! {
    /// JSON lines and the fields of a line.
    pub struct JsonlConfig {
        /// A file, or "-" for stdin.
        pub path: PathBuf = "-".into(),
        /// Path of the value within a line, e.g. "energy.power"; "" for a line that is a number.
        pub value: String = "value".into(),
        /// Path of the time within a line; "" for the time of arrival.
        pub time: String = "time".into(),
        /// Format of times: "iso", "unix-s", "unix-ms" or "day-first" (31.12.2024 23:45).
        pub time_format: TimeFormat = TimeFormat::Iso,
        /// Time zone of times without an offset, if it is not the window's.
        pub time_zone: Option<LocalTimeZone> = None => "\"Europe/London\"",
        /// The file still grows; if not, the source ends with it.
        pub follow: bool = true,
    }
}

impl SourceKind for JsonlConfig {
    fn check(&self) -> Result<(), String> {
        match self.path.as_os_str().is_empty() {
            true => Err("source.path is empty; name the file, or \"-\" for stdin".into()),
            false => Ok(()),
        }
    }

    fn place(&self) -> String {
        if self.path == Path::new("-") { "stdin".into() } else { self.path.display().to_string() }
    }

    fn open(&self, context: &SourceContext<'_>) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(Jsonl::open(
            JsonlConfig { time_zone: Some(context.time_zone(self.time_zone.as_ref())), ..self.clone() },
            context.position,
        )?))
    }

    fn is_recorded(&self) -> bool {
        !self.follow && self.path != Path::new("-")
    }
}

/// JSON lines as readings.
#[derive(Debug)]
pub struct Jsonl {
    fields: JsonFields,
    stream: JsonlStream,
    filter: DuplicateFilter,
    intake: Intake,
}

#[derive(Debug)]
enum JsonlStream {
    File(Tail, bool),
    Pipe(Pipe),
}

/// A stream that can only be read by a blocking call.
#[derive(Debug)]
struct Pipe {
    blocks: BackgroundReader<io::Result<Vec<u8>>>,
    lines: Lines,
}

impl Jsonl {
    /// Opens the file or stdin, and continues after `position`.
    pub fn open(settings: JsonlConfig, position: SourcePosition) -> Result<Self, SourceError> {
        let times = TimeReader::new(settings.time_format, settings.time_zone.unwrap_or_default());
        let (stream, times) = if settings.path == Path::new("-") {
            (JsonlStream::Pipe(Pipe::start(io::stdin())?), times.resumed(position))
        } else {
            (JsonlStream::File(Tail::open(settings.path, settings.follow)?, settings.follow), times)
        };
        let fields = JsonFields::new(&settings.value, &settings.time, times);
        Ok(Self { fields, stream, filter: DuplicateFilter::after(position), intake: Intake::default() })
    }
}

impl Source for Jsonl {
    fn read(&mut self, count: usize) -> Result<InputBatch, SourceError> {
        let mut readings = Vec::new();
        let dropped = self.stream.dropped();
        while readings.len() < count {
            let line = match &mut self.stream {
                JsonlStream::Pipe(pipe) => match pipe.next(readings.is_empty()) {
                    // The lines so far go first; the next call meets the end again.
                    Err(_) if !readings.is_empty() => None,
                    line => line?,
                },
                JsonlStream::File(tail, follow) => match tail.next()? {
                    TailEvent::Line(line) => Some(line),
                    TailEvent::Restart => {
                        self.filter.expect_duplicates(true);
                        continue;
                    }
                    TailEvent::End if *follow => {
                        if readings.is_empty() {
                            thread::sleep(READ_TIMEOUT);
                        }
                        None
                    }
                    TailEvent::End if readings.is_empty() => return Err(SourceError::Ended),
                    TailEvent::End => None,
                },
            };
            let Some(line) = line else { break };
            if !line.trim().is_empty() {
                let reading = self.intake.record(|| line.clone(), self.fields.reading(&line));
                readings.extend(reading.and_then(|reading| self.filter.pass(reading)));
            }
        }
        self.intake.dropped(dropped, self.stream.dropped());
        Ok(InputBatch::Readings(readings))
    }

    fn intake(&self) -> Option<&Intake> {
        Some(&self.intake)
    }
}

impl JsonlStream {
    /// Lines that were too long.
    fn dropped(&self) -> u64 {
        match self {
            JsonlStream::File(tail, _) => tail.dropped(),
            JsonlStream::Pipe(pipe) => pipe.lines.dropped,
        }
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
        Ok(Self { blocks: BackgroundReader::start("stdin", 4, read)?, lines: Lines::default() })
    }

    /// The next line; with `wait`, up to the read timeout.
    fn next(&mut self, wait: bool) -> Result<Option<String>, SourceError> {
        loop {
            if let Some(line) = self.lines.next() {
                return Ok(Some(line));
            }
            match self.blocks.next(wait) {
                Fetched::Item(Ok(block)) if !block.is_empty() => self.lines.push(&block),
                Fetched::Item(Err(cause)) => return Err(SourceError::File { path: "stdin".into(), cause }),
                Fetched::Empty => return Ok(None),
                Fetched::Item(Ok(_)) | Fetched::Ended => {
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

    fn values(batch: InputBatch) -> Vec<(i64, f64)> {
        match batch {
            InputBatch::Readings(readings) => {
                readings.iter().map(|reading| (reading.time_ms, reading.value)).collect()
            }
            InputBatch::Rows(_) => panic!("rows"),
        }
    }

    fn settings(path: PathBuf, follow: bool) -> JsonlConfig {
        JsonlConfig { path, time_format: TimeFormat::UnixMs, follow, ..Default::default() }
    }

    #[test]
    fn a_growing_file_with_rubbish_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("load.jsonl");
        fs::write(&path, "{\"time\":1,\"value\":1.5}\nrubbish\n\n{\"time\":2,\"val").unwrap();
        let mut source = Jsonl::open(settings(path.clone(), true), SourcePosition::default()).unwrap();
        assert_eq!(values(source.read(9).unwrap()), [(1, 1.5)]);
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"ue\":2.5}\n{\"time\":3,\"value\":9}\n")
            .unwrap();
        assert_eq!(values(source.read(9).unwrap()), [(2, 2.5), (3, 9.0)]);
        assert_eq!(source.malformed(), 1);
        let known = SourcePosition { newest_ms: Some(2), rows: 0 };
        let mut finished = Jsonl::open(settings(path, false), known).unwrap();
        assert_eq!(values(finished.read(9).unwrap()), [(3, 9.0)]);
        assert!(matches!(finished.read(9), Err(SourceError::Ended)));
    }

    #[test]
    fn a_pipe_is_read_as_it_fills_and_ends_with_its_writer() {
        let (reader, mut writer) = io::pipe().unwrap();
        let fields =
            JsonFields::new("value", "time", TimeReader::new(TimeFormat::UnixMs, LocalTimeZone::default()));
        let stream = JsonlStream::Pipe(Pipe::start(reader).unwrap());
        let filter = DuplicateFilter::after(SourcePosition::default());
        let mut source = Jsonl { fields, stream, filter, intake: Intake::default() };
        writer.write_all(b"{\"time\":1,\"value\":1}\n{\"time\":2,").unwrap();
        assert_eq!(values(source.read(9).unwrap()), [(1, 1.0)]);
        writer.write_all(b"\"value\":2}\n{\"time\":3,\"value\":3}").unwrap();
        drop(writer);
        let mut rest = Vec::new();
        let ended = loop {
            match source.read(9) {
                Ok(batch) => rest.extend(values(batch)),
                Err(error) => break error,
            }
        };
        assert!(matches!(ended, SourceError::Ended));
        assert_eq!(rest, [(2, 2.0), (3, 3.0)]);
    }
}
