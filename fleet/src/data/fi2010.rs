//! FI-2010, as Ntakaris et al. publish it: text with 149 rows, one column a sample; and a substitute in the same layout.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use super::files::{self, DataFile, TEXT_BYTES_MAX};
use super::{DataError, DataRequest, Dataset, FilePosition, FormatError, SamplePool, SampleTargets};

const ROWS: usize = 149;
const FEATURES: usize = 144;
const CLASSES: u32 = 3;
/// The largest training file has rows of about 6 MB.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// Some editors begin a text with it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The remark beside every figure from the substitute.
pub(super) const SUBSTITUTE: &str = "Bitstamp substitute, not FI-2010";

/// The file that is there, and whether it is the substitute; of several folds the third, as the published code.
pub(super) fn find(folder: &Path) -> Result<Option<(PathBuf, bool)>, DataError> {
    let is_training = |name: &str| name.starts_with("Train_Dst_NoAuction_") && name.ends_with(".txt");
    let mut real = files::find(Dataset::Hft, folder, is_training)?;
    real.sort_by_key(|path| !files::plain_name(path).ends_with("_CF_3.txt"));
    if let Some(path) = real.into_iter().next() {
        return Ok(Some((path, false)));
    }
    let is_substitute = |name: &str| name.contains("fi2010layout") && name.ends_with(".txt");
    let substitute = files::find(Dataset::Hft, folder, is_substitute)?;
    Ok(substitute.into_iter().next().map(|path| (path, true)))
}

pub(super) fn load(folder: &Path, request: &DataRequest) -> Result<SamplePool, DataError> {
    let (path, is_substitute) = find(folder)?
        .ok_or_else(|| files::missing(Dataset::Hft, folder, "Train_Dst_NoAuction_ZScore_CF_3.txt"))?;
    let mut rows = TextRows::open(DataFile::new(Dataset::Hft, path))?;
    let first = rows.numbers(None)?;
    let recorded = first.len();
    if recorded == 0 {
        return Err(rows.source.empty(Some(FilePosition::Line(1)), "the first row is empty".into()));
    }
    let chosen = request.choose(recorded);
    let mut features = vec![0.0; chosen.len() * FEATURES];
    for row in 0..FEATURES {
        let next;
        let numbers = if row == 0 {
            &first
        } else {
            next = rows.numbers(Some(recorded))?;
            &next
        };
        for (sample, at) in features.chunks_exact_mut(FEATURES).zip(&chosen) {
            sample[row] = numbers[*at];
        }
    }
    let labels = rows.labels(recorded)?;
    for _ in FEATURES + 1..ROWS {
        rows.labels(recorded)?;
    }
    rows.end()?;
    Ok(SamplePool {
        shape: vec![FEATURES],
        features,
        targets: SampleTargets::Classes { of: chosen.iter().map(|at| labels[*at]).collect(), count: CLASSES },
        owners: None,
        recorded,
        note: is_substitute.then(|| SUBSTITUTE.to_owned()),
    })
}

/// The rows of a file, one after the other.
struct TextRows {
    source: DataFile,
    content: Box<dyn BufRead>,
    line: u64,
    text: Vec<u8>,
}

impl TextRows {
    fn open(source: DataFile) -> Result<Self, DataError> {
        let content = Box::new(source.open(TEXT_BYTES_MAX)?);
        Ok(Self { source, content, line: 0, text: Vec::new() })
    }

    /// Moves on to the next row; whether there is one.
    fn advance(&mut self) -> Result<bool, DataError> {
        self.line += 1;
        self.text.clear();
        let mut line = (&mut self.content).take(LINE_BYTES_MAX);
        match line.read_until(b'\n', &mut self.text) {
            Err(error) => Err(self.source.failed(FilePosition::Line(self.line), &error)),
            Ok(read) if read as u64 == LINE_BYTES_MAX => {
                Err(self.source.at_line(self.line, FormatError::Bomb))
            }
            Ok(read) => {
                if self.line == 1 && self.text.starts_with(BYTE_ORDER_MARK) {
                    self.text.drain(..BYTE_ORDER_MARK.len());
                }
                Ok(read > 0)
            }
        }
    }

    /// The numbers of the next row, as many as `wanted` if that is known.
    fn numbers(&mut self, wanted: Option<usize>) -> Result<Vec<f32>, DataError> {
        if !self.advance()? {
            let cause = FormatError::Table { what: "rows", found: self.line as usize - 1, wanted: ROWS };
            return Err(self.source.at_line(self.line, cause));
        }
        let mut numbers = Vec::with_capacity(wanted.unwrap_or(0));
        for word in self.text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            let number = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
            let Some(number) = number.filter(|number: &f32| number.is_finite()) else {
                let found = String::from_utf8_lossy(word).chars().take(40).collect();
                return Err(self
                    .source
                    .at_line(self.line, FormatError::Number { found, column: numbers.len() + 1 }));
            };
            numbers.push(number);
        }
        match wanted {
            Some(wanted) if wanted != numbers.len() => {
                let cause = FormatError::Table { what: "numbers", found: numbers.len(), wanted };
                Err(self.source.at_line(self.line, cause))
            }
            _ => Ok(numbers),
        }
    }

    /// The next row as classes: 1 to 3 in the file, 0 to 2 here.
    fn labels(&mut self, wanted: usize) -> Result<Vec<u32>, DataError> {
        let numbers = self.numbers(Some(wanted))?;
        let class = |number: &f32| match *number {
            1.0 => Ok(0),
            2.0 => Ok(1),
            3.0 => Ok(2),
            other => {
                let cause = FormatError::Label { found: other.to_string(), first: 1, last: CLASSES };
                Err(self.source.at_line(self.line, cause))
            }
        };
        numbers.iter().map(class).collect()
    }

    /// Nothing but blanks may follow.
    fn end(&mut self) -> Result<(), DataError> {
        while self.advance()? {
            if !self.text.trim_ascii().is_empty() {
                let cause = FormatError::Table { what: "rows", found: self.line as usize, wanted: ROWS };
                return Err(self.source.at_line(self.line, cause));
            }
        }
        Ok(())
    }
}
