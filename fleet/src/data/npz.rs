//! PathMNIST, as MedMNIST publishes it: a zip archive of .npy arrays.

use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::files::{self, BYTES_MAX, Bounded, DataFile};
use super::npy::{self, NpyArray};
use super::{DataError, DataRequest, Dataset, FilePosition, FormatError, SamplePool, SampleTargets};

const SIDE: usize = 28;
const PIXELS: usize = SIDE * SIDE;
const CHANNELS: usize = 3;
const CLASSES: u32 = 9;
/// The training split of the published archive.
pub(super) const RECORDED_ALL: usize = 89_996;

/// The archive, if it is there.
pub(super) fn find(folder: &Path) -> Result<Option<PathBuf>, DataError> {
    let is_archive = |name: &str| name.starts_with("pathmnist") && name.ends_with(".npz");
    Ok(files::find(Dataset::Pathmnist, folder, is_archive)?.into_iter().next())
}

pub(super) fn load(folder: &Path, request: &DataRequest) -> Result<SamplePool, DataError> {
    let path = find(folder)?.ok_or_else(|| files::missing(Dataset::Pathmnist, folder, "pathmnist*.npz"))?;
    let archive = DataFile::new(Dataset::Pathmnist, path);
    let unpack = |error: zip::result::ZipError| archive.at_byte(0, FormatError::Packing(error.to_string()));
    let mut zip = ZipArchive::new(archive.open_archive()?).map_err(unpack)?;
    let names: Vec<String> = zip.file_names().filter_map(|name| Some(name.ok()?.into_owned())).collect();
    let has = |split: &str, what: &str| names.contains(&format!("{split}_{what}.npy"));
    let absent = |wanted: String| archive.at_byte(0, FormatError::Absent { wanted, found: list(&names) });
    let Some(split) = ["train", "test"].into_iter().find(|split| has(split, "images")) else {
        return Err(absent("train_images.npy or test_images.npy".into()));
    };
    if !has(split, "labels") {
        return Err(absent(format!("{split}_labels.npy")));
    }
    let mut array = |name: String| -> Result<(DataFile, NpyArray), DataError> {
        let member = DataFile::new(Dataset::Pathmnist, archive.path().join(&name));
        let content =
            zip.by_name(&name).map_err(|error| member.at_byte(0, FormatError::Packing(error.to_string())))?;
        let bytes = member.all(Bounded { content, left: BYTES_MAX })?;
        let array = npy::parse(&member, bytes)?;
        Ok((member, array))
    };
    let (image_source, images) = array(format!("{split}_images.npy"))?;
    let (label_source, labels) = array(format!("{split}_labels.npy"))?;
    let recorded = match images.shape[..] {
        [recorded, SIDE, SIDE, CHANNELS] => recorded,
        _ => {
            let cause = FormatError::Shape { what: "images", found: images.shape, wanted: "[n, 28, 28, 3]" };
            return Err(image_source.at_byte(0, cause));
        }
    };
    if labels.values.len() != recorded {
        let cause = FormatError::Counts { labels: labels.values.len(), samples: recorded };
        return Err(label_source.at_byte(labels.head, cause));
    }
    if let Some(at) = labels.values.iter().position(|label| u32::from(*label) >= CLASSES) {
        let cause = FormatError::Label { found: labels.values[at].to_string(), first: 0, last: CLASSES - 1 };
        return Err(label_source.at_byte(labels.head + at, cause));
    }
    if recorded == 0 {
        return Err(image_source.empty(Some(FilePosition::Byte(0)), "the array holds no image".into()));
    }

    let levels: Vec<f32> = (0..=u8::MAX).map(|value| (f32::from(value) / 255.0 - 0.5) / 0.5).collect();
    let chosen = request.choose(recorded);
    let mut features = Vec::with_capacity(chosen.len() * CHANNELS * PIXELS);
    for at in &chosen {
        let pixels = &images.values[at * CHANNELS * PIXELS..(at + 1) * CHANNELS * PIXELS];
        for channel in 0..CHANNELS {
            let values = pixels.iter().skip(channel).step_by(CHANNELS);
            features.extend(values.map(|value| levels[usize::from(*value)]));
        }
    }
    let of = chosen.iter().map(|at| u32::from(labels.values[*at])).collect();
    let is_all = split == "train" && recorded == RECORDED_ALL;
    Ok(SamplePool {
        shape: vec![CHANNELS, SIDE, SIDE],
        features,
        targets: SampleTargets::Classes { of, count: CLASSES },
        owners: None,
        recorded,
        note: (!is_all).then(|| {
            format!("{recorded} images of the {split} split of PathMNIST, not all {RECORDED_ALL} of train")
        }),
    })
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ").chars().take(200).collect() }
}
