//! The data sets in a folder: complete, partial, broken or missing.

use std::fmt::{self, Write};
use std::io::BufRead;
use std::path::{Path, PathBuf};

use evenhand_program::exit::Exit;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::files::{self, DataFile, TEXT_BYTES_MAX};
use super::{
    AsPublished, DataError, DataRequest, Dataset, FOLDER_VARIABLE, FilePosition, SamplePool, cifar, fi2010,
    idx, meters, npz, opsd,
};

/// Files that a table names one by one, at most.
const NAMED_MAX: usize = 5;

/// All data sets, with what a folder has of them.
#[derive(Debug, Serialize)]
pub struct Catalogue {
    folder: Option<DisplayedPath>,
    /// The error of a folder that cannot be listed.
    problem: Option<String>,
    datasets: Vec<DatasetEntry>,
}

/// A path, which need not be text: other bytes are shown as �.
#[derive(Debug, Clone)]
struct DisplayedPath(PathBuf);

impl Serialize for DisplayedPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.display())
    }
}

/// One data set of the catalogue.
#[derive(Debug, Serialize)]
struct DatasetEntry {
    dataset: Dataset,
    state: DatasetState,
    samples: Option<usize>,
    /// A remark, or the error.
    note: Option<String>,
    home: &'static str,
    files: Vec<CheckedFile>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum DatasetState {
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
struct CheckedFile {
    path: DisplayedPath,
    /// Bytes of the unpacked content.
    bytes: u64,
    sha256: String,
    /// True if this is the published file, where its checksum is known.
    as_published: Option<bool>,
}

impl Catalogue {
    /// The catalogue of a folder.
    pub fn of(folder: Option<PathBuf>) -> Self {
        let problem = folder.as_deref().and_then(|folder| files::check(folder).err());
        let readable = folder.as_deref().filter(|_| problem.is_none());
        let datasets = Dataset::published().map(|dataset| DatasetEntry::of(dataset, readable)).collect();
        Self {
            folder: folder.map(DisplayedPath),
            problem: problem.map(|problem| problem.to_string()),
            datasets,
        }
    }

    /// The exit code: a failure where something is broken.
    pub fn exit(&self) -> Exit {
        let is_broken = self.datasets.iter().any(|entry| entry.state == DatasetState::Broken);
        if is_broken || self.problem.is_some() { Exit::Data } else { Exit::Ok }
    }

    /// The catalogue as text for terminals.
    pub fn text(&self) -> String {
        let mut text = String::new();
        match (&self.folder, &self.problem) {
            (_, Some(problem)) => put_line(&mut text, format_args!("No data sets: {problem}")),
            (Some(folder), None) => {
                put_line(&mut text, format_args!("Data sets in {}", folder.0.display()));
            }
            (None, None) => put_line(
                &mut text,
                format_args!(
                    "No data folder: name one with --data DIR or {FOLDER_VARIABLE}. `--dataset synthetic` needs none."
                ),
            ),
        }
        for entry in &self.datasets {
            text.push('\n');
            entry.write(self.folder.as_ref().map_or(Path::new(""), |folder| &folder.0), &mut text);
        }
        text
    }
}

impl DatasetEntry {
    fn of(dataset: Dataset, folder: Option<&Path>) -> Self {
        // One sample of every owner: counting and checking need all of the files, but no features.
        let request =
            DataRequest { as_published: AsPublished::Paper, seed: 0, samples_max: 1, owners_max: usize::MAX };
        let home = dataset.home();
        let none = Self {
            dataset,
            state: DatasetState::Missing,
            samples: None,
            note: None,
            home,
            files: Vec::new(),
        };
        if dataset == Dataset::Synthetic {
            let note = Some("three Gaussian clusters in 144 dimensions; needs no files".to_owned());
            return Self { state: DatasetState::MadeUp, note, ..none };
        }
        let broken = |error: DataError, files: Vec<CheckedFile>| Self {
            dataset,
            state: DatasetState::Broken,
            samples: None,
            note: Some(error.to_string()),
            home,
            files,
        };
        let found = match folder.map_or(Ok(Vec::new()), |folder| files_of(dataset, folder)) {
            Ok(found) if found.is_empty() => return none,
            Ok(found) => found,
            Err(error) => return broken(error, Vec::new()),
        };
        let (mut files, mut unreadable) = (Vec::new(), None);
        for path in found {
            match CheckedFile::of(dataset, path) {
                Ok(file) => files.push(file),
                Err(error) => unreadable = unreadable.or(Some(error)),
            }
        }
        match unreadable.map_or_else(|| super::load(dataset, folder, &request), Err) {
            Err(error) => broken(error, files),
            Ok(pool) => {
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
            DatasetState::Complete => "complete",
            DatasetState::Present => "present",
            DatasetState::Subset => "subset",
            DatasetState::Substitute => "SUBSTITUTE",
            DatasetState::MadeUp => "always there",
            DatasetState::Broken => "BROKEN",
            DatasetState::Missing => "missing",
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
            let path = file.path.0.strip_prefix(folder).unwrap_or(&file.path.0);
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

impl CheckedFile {
    fn of(dataset: Dataset, path: PathBuf) -> Result<Self, DataError> {
        let source = DataFile::new(dataset, path);
        // An archive is packed inside; its own bytes are what was published.
        let mut content = source.open(TEXT_BYTES_MAX)?;
        let mut hasher = Sha256::new();
        let mut bytes = 0;
        loop {
            let chunk =
                content.fill_buf().map_err(|error| source.failed(FilePosition::Byte(bytes), &error))?;
            if chunk.is_empty() {
                break;
            }
            hasher.update(chunk);
            let read = chunk.len();
            bytes += read as u64;
            content.consume(read);
        }
        let sha256 = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let as_published = published(files::plain_name(source.path())).map(|known| known == sha256);
        Ok(Self { path: DisplayedPath(source.path().to_owned()), bytes, sha256, as_published })
    }
}

/// The paths with the names of a data set's files, as the loaders find them.
fn files_of(dataset: Dataset, folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let found = match dataset {
        Dataset::Mnist => {
            // Each by itself: they need not lie in the same place.
            let images = files::find(dataset, folder, |name| name == idx::IMAGES)?;
            let labels = files::find(dataset, folder, |name| name == idx::LABELS)?;
            [images, labels].concat()
        }
        Dataset::Cifar10 => cifar::find(folder)?,
        Dataset::Pathmnist => npz::find(folder)?.into_iter().collect(),
        Dataset::Hft => fi2010::find(folder)?.into_iter().map(|(path, _)| path).collect(),
        Dataset::Electricity => opsd::find(folder)?.into_iter().map(|(path, _)| path).collect(),
        Dataset::Meters | Dataset::DayAhead => meters::find(folder)?,
        Dataset::Synthetic => Vec::new(),
    };
    Ok(found)
}

/// The checksum of a published file, unpacked, where it is known.
fn published(name: &str) -> Option<&'static str> {
    match name {
        idx::IMAGES => Some("ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        idx::LABELS => Some("65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
        _ => None,
    }
}

/// The state of a data set, from its pool and files.
fn state(dataset: Dataset, pool: &SamplePool, files: &[CheckedFile]) -> DatasetState {
    let all = match dataset {
        Dataset::Mnist if files.iter().all(|file| file.as_published == Some(true)) => {
            return DatasetState::Complete;
        }
        Dataset::Mnist if pool.recorded == 60_000 => return DatasetState::Present,
        Dataset::Mnist => false,
        Dataset::Cifar10 => pool.recorded == 50_000,
        Dataset::Pathmnist => pool.recorded == npz::RECORDED_ALL,
        Dataset::Meters | Dataset::DayAhead => {
            pool.owners.as_ref().is_some_and(|owners| owners.len() >= 5_000)
        }
        Dataset::Hft | Dataset::Electricity if pool.note.is_some() => return DatasetState::Substitute,
        Dataset::Hft | Dataset::Electricity => return DatasetState::Present,
        Dataset::Synthetic => return DatasetState::MadeUp,
    };
    if all { DatasetState::Complete } else { DatasetState::Subset }
}

fn put_line(text: &mut String, line: fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a String takes any text");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::SampleTargets;

    fn state_of(dataset: Dataset, recorded: usize, as_published: Option<bool>) -> DatasetState {
        let pool = SamplePool {
            shape: vec![1],
            features: Vec::new(),
            targets: SampleTargets::Classes { of: Vec::new(), count: 10 },
            owners: None,
            recorded,
            note: None,
        };
        let file = CheckedFile {
            path: DisplayedPath(PathBuf::new()),
            bytes: 1,
            sha256: String::new(),
            as_published,
        };
        state(dataset, &pool, &[file])
    }

    #[test]
    fn only_what_is_known_to_be_all_is_complete() {
        assert_eq!(state_of(Dataset::Mnist, 60_000, Some(true)), DatasetState::Complete);
        assert_eq!(state_of(Dataset::Mnist, 60_000, Some(false)), DatasetState::Present);
        assert_eq!(state_of(Dataset::Mnist, 3, Some(false)), DatasetState::Subset);
        assert_eq!(state_of(Dataset::Hft, 5, None), DatasetState::Present);
        assert_eq!(state_of(Dataset::Electricity, 5, None), DatasetState::Present);
    }
}
