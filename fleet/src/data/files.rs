//! Files of a data set: where they are, and what is in them, unpacked.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::{DataError, Dataset, Flaw, Place};

/// No file that is read as a whole is larger, unpacked.
pub(super) const BYTES_MAX: u64 = 512 << 20;
/// No text that is read line by line is longer, unpacked.
pub(super) const TEXT_BYTES_MAX: u64 = 2 << 30;

const BUFFER_BYTES: usize = 1 << 16;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Folders inside the data folder in which a data set may lie, beside the data folder itself.
pub(super) fn places(dataset: Dataset) -> &'static [&'static str] {
    match dataset {
        Dataset::Mnist => &["mnist"],
        Dataset::Cifar10 => &["cifar10", "cifar-10-batches-bin"],
        Dataset::Pathmnist => &["pathmnist"],
        Dataset::Hft => &["fi2010", "hft", "hft_substitute_bitstamp"],
        Dataset::Electricity => &["electricity_de", "electricity"],
        Dataset::Meters => &["smartmeters_london/csv", "smartmeters_london", "meters"],
        Dataset::Synthetic => &[],
    }
}

/// Files whose names `fits` accepts, sorted, of the first place that has any; a `.gz` at the end is no part of a name.
pub(super) fn find(dataset: Dataset, folder: &Path, fits: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let inside = places(dataset).iter().map(|place| folder.join(place));
    inside
        .chain([folder.to_owned()])
        .map(|place| list(&place, &fits))
        .find(|files| !files.is_empty())
        .unwrap_or_default()
}

fn list(place: &Path, fits: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths.filter(|path| fits(plain_name(path)) && path.is_file()).collect();
    // `a` before `a.gz`: the same file twice is read once, unpacked.
    files.sort();
    files.dedup_by(|packed, plain| plain_name(packed) == plain_name(plain));
    files
}

/// The name of a file without the `.gz` of its packing; empty if it is no text.
pub(super) fn plain_name(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_suffix(".gz").unwrap_or(name)
}

/// As [`find`], one file of exactly this name.
pub(super) fn find_one(dataset: Dataset, folder: &Path, name: &'static str) -> Result<PathBuf, DataError> {
    let found = find(dataset, folder, |file| file == name).into_iter().next();
    found.ok_or_else(|| missing(dataset, folder, name))
}

pub(super) fn missing(dataset: Dataset, folder: &Path, wanted: &'static str) -> DataError {
    DataError::Missing { dataset, folder: folder.to_owned(), wanted, places: places(dataset).join(", ") }
}

/// A file with the data set it belongs to: what every complaint about it needs.
#[derive(Debug, Clone)]
pub(super) struct Source {
    dataset: Dataset,
    path: PathBuf,
}

impl Source {
    pub(super) fn new(dataset: Dataset, path: PathBuf) -> Self {
        Self { dataset, path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn at_byte(&self, offset: usize, flaw: Flaw) -> DataError {
        self.broken(Place::Byte(offset as u64), flaw)
    }

    pub(super) fn at_line(&self, line: u64, flaw: Flaw) -> DataError {
        self.broken(Place::Line(line), flaw)
    }

    fn broken(&self, place: Place, flaw: Flaw) -> DataError {
        DataError::Broken { dataset: self.dataset, path: self.path.clone(), place, flaw: Box::new(flaw) }
    }

    pub(super) fn empty(&self, reason: String) -> DataError {
        DataError::Empty { dataset: self.dataset, path: self.path.clone(), reason }
    }

    fn unreadable(&self, cause: io::Error) -> DataError {
        DataError::Read { path: self.path.clone(), cause }
    }

    /// Reading failed.
    pub(super) fn failed(&self, place: Place, error: &io::Error) -> DataError {
        let flaw = match error.kind() {
            io::ErrorKind::FileTooLarge => Flaw::Bomb,
            _ => Flaw::Packing(error.to_string()),
        };
        self.broken(place, flaw)
    }

    /// The file itself, as it is.
    pub(super) fn open_packed(&self) -> Result<File, DataError> {
        File::open(&self.path).map_err(|cause| self.unreadable(cause))
    }

    /// The file's content, unpacked as it is read; beyond `limit_bytes` reading fails.
    pub(super) fn open(&self, limit_bytes: u64) -> Result<BufReader<Bounded<Box<dyn Read>>>, DataError> {
        let mut file = self.open_packed()?;
        let mut magic = Vec::new();
        (&mut file).take(2).read_to_end(&mut magic).map_err(|cause| self.unreadable(cause))?;
        file.rewind().map_err(|cause| self.unreadable(cause))?;
        let content: Box<dyn Read> = if magic == GZIP_MAGIC {
            Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, file)))
        } else {
            Box::new(file)
        };
        Ok(BufReader::with_capacity(BUFFER_BYTES, Bounded { content, left: limit_bytes }))
    }

    /// All of the content, unpacked.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, DataError> {
        self.all(self.open(BYTES_MAX)?)
    }

    /// All that `content` has to say.
    pub(super) fn all(&self, mut content: impl Read) -> Result<Vec<u8>, DataError> {
        let mut bytes = Vec::new();
        match content.read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(self.failed(Place::Byte(bytes.len() as u64), &error)),
        }
    }
}

/// Content that is believed up to a length, however small it is while packed.
pub(super) struct Bounded<R> {
    pub(super) content: R,
    pub(super) left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(buffer)?;
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_unpacks_beyond_the_limit_is_refused_before_it_fills_the_memory() {
        let source = Source::new(Dataset::Mnist, PathBuf::from("train-images-idx3-ubyte"));
        let all = |length, left| source.all(Bounded { content: io::repeat(7).take(length), left });
        assert_eq!(all(100, 100).unwrap().len(), 100);
        let refused = all(u64::MAX, 100_000).unwrap_err();
        assert!(refused.to_string().contains("goes on beyond what any such file holds"), "{refused}");
    }
}
