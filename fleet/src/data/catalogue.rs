//! `evenhand-fleet data`: what is here, what is missing, and where it is published.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::files::{self, Source, TEXT_BYTES_MAX};
use super::{
    DataError, Dataset, FOLDER_VARIABLE, Place, Pool, Request, cifar, fi2010, idx, meters, npz, opsd,
};
use crate::experiment::setup::AsPublished;
use crate::report::plot;

/// Files that a table names one by one, at most.
const NAMED_MAX: usize = 5;

/// How a folder of data sets looks.
pub const HELP: &str = "\
The folder holds one folder for each data set, or the files themselves, packed with gzip or plain:
  mnist/           train-images-idx3-ubyte, train-labels-idx1-ubyte
  cifar10/         data_batch_1.bin to data_batch_5.bin, at least one of them
  pathmnist/       pathmnist.npz
  fi2010/          Train_Dst_NoAuction_ZScore_CF_3.txt
  electricity_de/  time_series_15min_singleindex.csv
  meters/          MAC000002.csv and so on, or block_0.csv and so on

Checksums are those of the unpacked files.

  EVENHAND_DATA=~/data evenhand-fleet data
  evenhand-fleet data --data ~/data --json | jq '.datasets[] | select(.state == \"missing\").home'";

/// Where the files are, and how to speak of them.
#[derive(Debug, clap::Args)]
pub struct DataArgs {
    /// The folder of all data sets; the default is what EVENHAND_DATA names
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Writes the catalogue to `stdout`.
pub fn run(args: DataArgs, mut stdout: impl Write) -> io::Result<()> {
    let catalogue = Catalogue::of(super::folder(args.data));
    if args.json {
        serde_json::to_writer_pretty(&mut stdout, &catalogue)?;
        writeln!(stdout)
    } else {
        stdout.write_all(catalogue.text().as_bytes())
    }
}

#[derive(Debug, Serialize)]
struct Catalogue {
    folder: Option<PathBuf>,
    datasets: Vec<Entry>,
}

/// What is known of one data set.
#[derive(Debug, Serialize)]
struct Entry {
    dataset: Dataset,
    state: State,
    samples: Option<usize>,
    /// What must be said of it, or what is wrong with it.
    note: Option<String>,
    home: &'static str,
    files: Vec<Checked>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// All that is published.
    Complete,
    /// Files are there; whether they are all that is published is not known.
    Present,
    /// A part of what is published.
    Subset,
    /// Other data of the same kind.
    Substitute,
    /// Made up on the spot.
    MadeUp,
    /// Files are there, and cannot be used.
    Broken,
    /// No files.
    Missing,
}

/// A file with its checksum.
#[derive(Debug, Serialize)]
struct Checked {
    path: PathBuf,
    /// Of the content, unpacked.
    bytes: u64,
    sha256: String,
    /// Whether this is the published file, where its checksum is known.
    as_published: Option<bool>,
}

impl Catalogue {
    fn of(folder: Option<PathBuf>) -> Self {
        let datasets =
            Dataset::value_variants().iter().map(|&dataset| Entry::of(dataset, folder.as_deref())).collect();
        Self { folder, datasets }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        match &self.folder {
            Some(folder) => put_line(&mut text, format_args!("Data sets in {}", folder.display())),
            None => put_line(
                &mut text,
                format_args!(
                    "No data folder: name one with --data DIR or {FOLDER_VARIABLE}. `--dataset synthetic` needs none."
                ),
            ),
        }
        for entry in &self.datasets {
            text.push('\n');
            entry.write(self.folder.as_deref().unwrap_or(Path::new("")), &mut text);
        }
        text
    }
}

impl Entry {
    fn of(dataset: Dataset, folder: Option<&Path>) -> Self {
        // One sample of every owner: counting and checking need all of the files, but no features.
        let request =
            Request { as_published: AsPublished::Paper, seed: 0, samples_max: 1, owners_max: usize::MAX };
        let found = folder.map(|folder| files_of(dataset, folder)).unwrap_or_default();
        let home = dataset.home();
        let none =
            Self { dataset, state: State::Missing, samples: None, note: None, home, files: Vec::new() };
        if dataset == Dataset::Synthetic {
            let note = Some("three Gaussian clusters in 144 dimensions; needs no files".to_owned());
            return Self { state: State::MadeUp, note, ..none };
        }
        if found.is_empty() {
            return none;
        }
        let files = found.into_iter().map(|path| Checked::of(dataset, path)).collect::<Result<Vec<_>, _>>();
        let loaded = files.and_then(|files| Ok((files, super::load(dataset, folder, &request)?)));
        match loaded {
            Err(error) => Self { state: State::Broken, note: Some(error.to_string()), ..none },
            Ok((files, pool)) => {
                let samples = pool.owners.is_none().then_some(pool.recorded);
                let state = state(dataset, &pool, &files);
                let households = pool.owners.as_ref().map(|owners| format!("{} households", owners.len()));
                let note = [households, pool.note].into_iter().flatten().collect::<Vec<_>>().join("; ");
                let note = (!note.is_empty()).then_some(note);
                Self { state, samples, note, files, ..none }
            }
        }
    }

    fn write(&self, folder: &Path, text: &mut String) {
        let name = self.dataset.name();
        let state = match self.state {
            State::Complete => "complete",
            State::Present => "present",
            State::Subset => "subset",
            State::Substitute => "SUBSTITUTE",
            State::MadeUp => "always there",
            State::Broken => "BROKEN",
            State::Missing => "missing",
        };
        let samples = self.samples.map(|samples| format!(", {samples} samples")).unwrap_or_default();
        put_line(text, format_args!("{name:<12} {state}{samples}"));
        if let Some(note) = &self.note {
            put_line(text, format_args!("  {note}"));
        }
        if self.dataset != Dataset::Synthetic {
            put_line(text, format_args!("  published at {}", self.home));
        }
        if self.files.len() > NAMED_MAX {
            put_line(text, format_args!("  {} files; --json lists them", self.files.len()));
            return;
        }
        for file in &self.files {
            let path = file.path.strip_prefix(folder).unwrap_or(&file.path);
            let verdict = match file.as_published {
                Some(true) => ", as published",
                Some(false) => ", NOT as published",
                None => "",
            };
            put_line(text, format_args!("  {} ({} bytes unpacked{verdict})", path.display(), file.bytes));
            put_line(text, format_args!("    sha256 {}", file.sha256));
        }
    }
}

impl Checked {
    fn of(dataset: Dataset, path: PathBuf) -> Result<Self, DataError> {
        let source = Source::new(dataset, path);
        // An archive is packed inside; its own bytes are what was published.
        let mut content = source.open(TEXT_BYTES_MAX)?;
        let mut hasher = Sha256::new();
        let mut bytes = 0;
        loop {
            let chunk = content.fill_buf().map_err(|error| source.failed(Place::Byte(bytes), &error))?;
            if chunk.is_empty() {
                break;
            }
            hasher.update(chunk);
            let read = chunk.len();
            bytes += read as u64;
            content.consume(read);
        }
        let sha256 = hasher.finalize().iter().fold(String::new(), |mut text, byte| {
            plot::put(&mut text, format_args!("{byte:02x}"));
            text
        });
        let as_published = published(files::plain_name(source.path())).map(|known| known == sha256);
        Ok(Self { path: source.path().to_owned(), bytes, sha256, as_published })
    }
}

/// The files of a data set that are there.
fn files_of(dataset: Dataset, folder: &Path) -> Vec<PathBuf> {
    match dataset {
        Dataset::Mnist => files::find(dataset, folder, |name| name == idx::IMAGES || name == idx::LABELS),
        Dataset::Cifar10 => cifar::find(folder),
        Dataset::Pathmnist => npz::find(folder).into_iter().collect(),
        Dataset::Hft => fi2010::find(folder).into_iter().map(|(path, _)| path).collect(),
        Dataset::Electricity => opsd::find(folder).into_iter().map(|(path, _)| path).collect(),
        Dataset::Meters => meters::find(folder),
        Dataset::Synthetic => Vec::new(),
    }
}

/// The checksum of a published file, unpacked, where it is known.
fn published(name: &str) -> Option<&'static str> {
    match name {
        idx::IMAGES => Some("ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        idx::LABELS => Some("65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
        _ => None,
    }
}

/// How much of the published data set a pool is.
fn state(dataset: Dataset, pool: &Pool, files: &[Checked]) -> State {
    let all = match dataset {
        Dataset::Mnist if files.iter().all(|file| file.as_published == Some(true)) => return State::Complete,
        Dataset::Mnist if pool.recorded == 60_000 => return State::Present,
        Dataset::Mnist => false,
        Dataset::Cifar10 => pool.recorded == 50_000,
        Dataset::Pathmnist => pool.recorded == npz::RECORDED_ALL,
        Dataset::Meters => pool.owners.as_ref().is_some_and(|owners| owners.len() >= 5_000),
        Dataset::Hft | Dataset::Electricity if pool.note.is_some() => return State::Substitute,
        Dataset::Hft | Dataset::Electricity => return State::Present,
        Dataset::Synthetic => return State::MadeUp,
    };
    if all { State::Complete } else { State::Subset }
}

fn put_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    plot::put(text, format_args!("{line}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Answers;

    fn state_of(dataset: Dataset, recorded: usize, as_published: Option<bool>) -> State {
        let pool = Pool {
            shape: vec![1],
            features: Vec::new(),
            answers: Answers::Classes { of: Vec::new(), count: 10 },
            owners: None,
            recorded,
            note: None,
        };
        let file = Checked { path: PathBuf::new(), bytes: 1, sha256: String::new(), as_published };
        state(dataset, &pool, &[file])
    }

    #[test]
    fn only_what_is_known_to_be_all_is_complete() {
        assert_eq!(state_of(Dataset::Mnist, 60_000, Some(true)), State::Complete);
        assert_eq!(state_of(Dataset::Mnist, 60_000, Some(false)), State::Present);
        assert_eq!(state_of(Dataset::Mnist, 3, Some(false)), State::Subset);
        assert_eq!(state_of(Dataset::Hft, 5, None), State::Present);
        assert_eq!(state_of(Dataset::Electricity, 5, None), State::Present);
    }
}
