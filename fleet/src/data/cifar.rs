//! CIFAR-10, as Krizhevsky publishes it: binary batches of records, one byte of label and 3 × 32 × 32 bytes of picture.

use std::path::{Path, PathBuf};

use super::files::{self, DataFile};
use super::{
    AsPublished, DataError, DataRequest, Dataset, FilePosition, FormatError, SamplePool, SampleTargets,
};

const CHANNEL: usize = 32 * 32;
const RECORD: usize = 1 + 3 * CHANNEL;
const CLASSES: u32 = 10;

/// Mean and deviation of each channel; the published code normalises by them, and then again as everybody does.
const CHANNELS_CODE: [(f32, f32); 3] = [(0.4914, 0.2470), (0.4822, 0.2435), (0.4465, 0.2616)];

/// The training batches that are there.
pub(super) fn find(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let is_batch = |name: &str| {
        let number = name.strip_prefix("data_batch_").and_then(|rest| rest.strip_suffix(".bin"));
        matches!(number, Some("1" | "2" | "3" | "4" | "5"))
    };
    files::find(Dataset::Cifar10, folder, is_batch)
}

pub(super) fn load(folder: &Path, request: &DataRequest) -> Result<SamplePool, DataError> {
    let paths = find(folder)?;
    let mut records = Vec::new();
    for path in &paths {
        let source = DataFile::new(Dataset::Cifar10, path.clone());
        let bytes = source.bytes()?;
        check(&source, &bytes)?;
        records.extend(bytes);
    }
    let Some(first) = paths.first() else {
        return Err(files::missing(Dataset::Cifar10, folder, "data_batch_1.bin"));
    };
    let recorded = records.len() / RECORD;
    if recorded == 0 {
        let first = DataFile::new(Dataset::Cifar10, first.clone());
        return Err(first.empty(Some(FilePosition::Byte(0)), "the file holds no record".into()));
    }
    let chosen = request.choose(recorded);
    let levels = levels(request.as_published);
    let mut of = Vec::with_capacity(chosen.len());
    let mut features = Vec::with_capacity(chosen.len() * 3 * CHANNEL);
    for at in &chosen {
        let (label, pixels) = records[at * RECORD..(at + 1) * RECORD].split_at(1);
        of.push(u32::from(label[0]));
        for (channel, levels) in pixels.chunks_exact(CHANNEL).zip(&levels) {
            features.extend(channel.iter().map(|pixel| levels[usize::from(*pixel)]));
        }
    }
    Ok(SamplePool {
        shape: vec![3, 32, 32],
        features,
        targets: SampleTargets::Classes { of, count: CLASSES },
        owners: None,
        recorded,
        note: (paths.len() < 5).then(|| format!("{} of the 5 training batches of CIFAR-10", paths.len())),
    })
}

/// The input value of each byte, by channel.
fn levels(as_published: AsPublished) -> [Vec<f32>; 3] {
    CHANNELS_CODE.map(|(mean, deviation)| {
        let level = |value: u8| {
            let value = f32::from(value) / 255.0;
            let value = match as_published {
                AsPublished::Paper => value,
                AsPublished::Code => (value - mean) / deviation,
            };
            (value - 0.5) / 0.5
        };
        (0..=u8::MAX).map(level).collect()
    })
}

fn check(source: &DataFile, bytes: &[u8]) -> Result<(), DataError> {
    let rest = bytes.len() % RECORD;
    if rest != 0 {
        let cause = FormatError::Length { wanted: RECORD as u64, found: rest as u64 };
        return Err(source.at_byte(bytes.len() - rest, cause));
    }
    let wrong = bytes.iter().step_by(RECORD).position(|label| u32::from(*label) >= CLASSES);
    match wrong {
        None => Ok(()),
        Some(record) => {
            let at = record * RECORD;
            let cause = FormatError::Label { found: bytes[at].to_string(), first: 0, last: CLASSES - 1 };
            Err(source.at_byte(at, cause))
        }
    }
}
