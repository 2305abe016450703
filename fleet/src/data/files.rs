//! Files of a data set: search and unpacking.

use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::{DataError, Dataset, FilePosition, FormatError};

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
        Dataset::Meters | Dataset::DayAhead => &["smartmeters_london/csv", "smartmeters_london", "meters"],
        Dataset::Synthetic => &[],
    }
}

/// The paths whose names `fits` accepts, sorted, in the first folder that has any; a `.gz` at the end is no part of a name.
/// They are not opened here: a path that is there and cannot be read is not missing.
pub(super) fn find(
    dataset: Dataset,
    folder: &Path,
    fits: impl Fn(&str) -> bool,
) -> Result<Vec<PathBuf>, DataError> {
    let mut unreadable = None;
    for path in places(dataset).iter().map(|place| folder.join(place)) {
        match list(&path, &fits) {
            Ok(files) if files.is_empty() => {}
            Ok(files) => return Ok(files),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {}
            Err(cause) => unreadable = unreadable.or(Some(DataError::Read { dataset, path, cause })),
        }
    }
    let beside = list(folder, &fits).map_err(|cause| DataError::Folder { path: folder.to_owned(), cause })?;
    match unreadable {
        Some(error) if beside.is_empty() => Err(error),
        _ => Ok(beside),
    }
}

/// An error if the data folder cannot be read at all.
pub(super) fn check(folder: &Path) -> Result<(), DataError> {
    let failed = fs::read_dir(folder).err();
    failed.map_or(Ok(()), |cause| Err(DataError::Folder { path: folder.to_owned(), cause }))
}

fn list(place: &Path, fits: impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        if fits(plain_name(&path)) {
            files.push(path);
        }
    }
    // `a` before `a.gz`: the same file twice is read once, unpacked.
    files.sort();
    files.dedup_by(|packed, plain| plain_name(packed) == plain_name(plain));
    Ok(files)
}

/// The name of a file without the `.gz` of its packing; empty if it is no text.
pub(super) fn plain_name(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_suffix(".gz").unwrap_or(name)
}

/// The one file of exactly this name, found as by [`find`].
pub(super) fn find_one(dataset: Dataset, folder: &Path, name: &'static str) -> Result<PathBuf, DataError> {
    let found = find(dataset, folder, |file| file == name)?.into_iter().next();
    found.ok_or_else(|| missing(dataset, folder, name))
}

pub(super) fn missing(dataset: Dataset, folder: &Path, wanted: &'static str) -> DataError {
    DataError::Missing { dataset, folder: folder.to_owned(), wanted, places: places(dataset).join(", ") }
}

/// A file with the data set it belongs to, as every error about it names them.
#[derive(Debug, Clone)]
pub(super) struct DataFile {
    dataset: Dataset,
    path: PathBuf,
}

impl DataFile {
    pub(super) fn new(dataset: Dataset, path: PathBuf) -> Self {
        Self { dataset, path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn at_byte(&self, offset: usize, cause: FormatError) -> DataError {
        self.broken(FilePosition::Byte(offset as u64), cause)
    }

    pub(super) fn at_line(&self, line: u64, cause: FormatError) -> DataError {
        self.broken(FilePosition::Line(line), cause)
    }

    fn broken(&self, position: FilePosition, cause: FormatError) -> DataError {
        DataError::Broken { dataset: self.dataset, path: self.path.clone(), position, cause: Box::new(cause) }
    }

    /// The error of a sound file without samples, with the position to look at, if there is one.
    pub(super) fn empty(&self, position: Option<FilePosition>, reason: String) -> DataError {
        DataError::Empty { dataset: self.dataset, path: self.path.clone(), position, reason }
    }

    fn unreadable(&self, cause: io::Error) -> DataError {
        DataError::Read { dataset: self.dataset, path: self.path.clone(), cause }
    }

    /// The error of a read that failed at `position`.
    pub(super) fn failed(&self, position: FilePosition, error: &io::Error) -> DataError {
        let cause = match error.kind() {
            io::ErrorKind::FileTooLarge => FormatError::Bomb,
            _ => FormatError::Packing(error.to_string()),
        };
        self.broken(position, cause)
    }

    /// The file itself, and whether it is packed. Nothing but a file is opened: a pipe would wait for a writer.
    fn open_packed(&self) -> Result<(File, bool), DataError> {
        let found = match fs::metadata(&self.path) {
            Ok(about) if about.is_file() => return self.open_file().map_err(|cause| self.unreadable(cause)),
            Ok(about) if about.is_dir() => "a folder",
            Ok(_) => "a pipe, a socket or a device",
            Err(cause) if cause.kind() == io::ErrorKind::NotFound && self.path.is_symlink() => {
                "a link to nothing"
            }
            Err(cause) => return Err(self.unreadable(cause)),
        };
        Err(DataError::NoFile { dataset: self.dataset, path: self.path.clone(), found })
    }

    fn open_file(&self) -> io::Result<(File, bool)> {
        let mut file = File::open(&self.path)?;
        let mut magic = Vec::new();
        (&mut file).take(2).read_to_end(&mut magic)?;
        file.rewind()?;
        Ok((file, magic == GZIP_MAGIC))
    }

    /// The file's content, unpacked as it is read; beyond `limit_bytes` reading fails.
    pub(super) fn open(&self, limit_bytes: u64) -> Result<BufReader<Bounded<Box<dyn Read>>>, DataError> {
        let (file, packed) = self.open_packed()?;
        let content: Box<dyn Read> = if packed {
            Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, file)))
        } else {
            Box::new(file)
        };
        Ok(BufReader::with_capacity(BUFFER_BYTES, Bounded { content, left: limit_bytes }))
    }

    /// The file's content, to be read in any order; what is packed is unpacked into memory first.
    pub(super) fn open_archive(&self) -> Result<Box<dyn ReadSeek>, DataError> {
        let (file, packed) = self.open_packed()?;
        Ok(if packed { Box::new(Cursor::new(self.bytes()?)) } else { Box::new(BufReader::new(file)) })
    }

    /// All of the content, unpacked.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, DataError> {
        self.all(self.open(BYTES_MAX)?)
    }

    /// All bytes of `content`.
    pub(super) fn all(&self, mut content: impl Read) -> Result<Vec<u8>, DataError> {
        let mut bytes = Vec::new();
        match content.read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(self.failed(FilePosition::Byte(bytes.len() as u64), &error)),
        }
    }
}

/// Content in any order.
pub(super) trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// Content up to a length, however small it is while packed.
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
        let source = DataFile::new(Dataset::Mnist, PathBuf::from("train-images-idx3-ubyte"));
        let all = |length, left| source.all(Bounded { content: io::repeat(7).take(length), left });
        assert_eq!(all(100, 100).unwrap().len(), 100);
        let refused = all(u64::MAX, 100_000).unwrap_err();
        assert!(refused.to_string().contains("goes on beyond what any such file holds"), "{refused}");
    }
}
