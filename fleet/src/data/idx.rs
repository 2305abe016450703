//! MNIST, as LeCun, Cortes and Burges publish it: idx files.

use std::path::Path;

use super::files::{self, DataFile};
use super::{
    AsPublished, DataError, DataRequest, Dataset, FilePosition, FormatError, SamplePool, SampleTargets,
};

pub(super) const IMAGES: &str = "train-images-idx3-ubyte";
pub(super) const LABELS: &str = "train-labels-idx1-ubyte";

const SIDE: usize = 28;
/// The model's input: two pixels more on each side.
const PADDED_SIDE: usize = 32;
const BORDER: usize = (PADDED_SIDE - SIDE) / 2;
const CLASSES: u32 = 10;

/// Mean and deviation of all training pixels, as usually taken.
const SCALE: (f32, f32) = (0.1307, 0.3081);
/// The same with the padding counted in, as the published code does.
const SCALE_PADDED: (f32, f32) = (0.1001, 0.2752);

pub(super) fn load(folder: &Path, request: &DataRequest) -> Result<SamplePool, DataError> {
    let images = DataFile::new(Dataset::Mnist, files::find_one(Dataset::Mnist, folder, IMAGES)?);
    let labels = DataFile::new(Dataset::Mnist, files::find_one(Dataset::Mnist, folder, LABELS)?);
    let label_bytes = labels.bytes()?;
    let label_array = parse(&labels, &label_bytes, 1)?;
    let image_bytes = images.bytes()?;
    let image_array = parse(&images, &image_bytes, 3)?;
    if image_array.shape[1..] != [SIDE, SIDE] {
        let cause = FormatError::Shape { what: "images", found: image_array.shape, wanted: "[n, 28, 28]" };
        return Err(images.at_byte(4, cause));
    }
    let recorded = image_array.shape[0];
    if label_array.shape[0] != recorded {
        return Err(
            labels.at_byte(4, FormatError::Counts { labels: label_array.shape[0], samples: recorded })
        );
    }
    if let Some(at) = label_array.values.iter().position(|label| u32::from(*label) >= CLASSES) {
        let cause =
            FormatError::Label { found: label_array.values[at].to_string(), first: 0, last: CLASSES - 1 };
        return Err(labels.at_byte(8 + at, cause));
    }
    if recorded == 0 {
        return Err(images.empty(Some(FilePosition::Byte(4)), "the file holds no image".into()));
    }

    let (mean, deviation) = match request.as_published {
        AsPublished::Paper => SCALE,
        AsPublished::Code => SCALE_PADDED,
    };
    let levels: Vec<f32> = (0..=u8::MAX).map(|value| (f32::from(value) / 255.0 - mean) / deviation).collect();
    let chosen = request.choose(recorded);
    let mut features = vec![levels[0]; chosen.len() * PADDED_SIDE * PADDED_SIDE];
    for (at, picture) in chosen.iter().zip(features.chunks_exact_mut(PADDED_SIDE * PADDED_SIDE)) {
        let pixels = &image_array.values[at * SIDE * SIDE..(at + 1) * SIDE * SIDE];
        for (line, row) in pixels.chunks_exact(SIDE).zip(picture.chunks_exact_mut(PADDED_SIDE).skip(BORDER)) {
            for (pixel, value) in line.iter().zip(&mut row[BORDER..]) {
                *value = levels[usize::from(*pixel)];
            }
        }
    }
    let of = chosen.iter().map(|at| u32::from(label_array.values[*at])).collect();
    Ok(SamplePool {
        shape: vec![1, PADDED_SIDE, PADDED_SIDE],
        features,
        targets: SampleTargets::Classes { of, count: CLASSES },
        owners: None,
        recorded,
        note: None,
    })
}

/// An array of bytes.
struct IdxArray<'a> {
    shape: Vec<usize>,
    values: &'a [u8],
}

/// An idx file of bytes with so many dimensions: two zeros, the type 8, the number of dimensions, each of them as a
/// big-endian u32, then the values.
fn parse<'a>(source: &DataFile, bytes: &'a [u8], dimensions: u8) -> Result<IdxArray<'a>, DataError> {
    let wanted = [0, 0, 8, dimensions];
    let found = &bytes[..bytes.len().min(4)];
    if found != wanted {
        let (wanted, found) = (format!("{wanted:02x?}"), format!("{found:02x?}"));
        return Err(source.at_byte(0, FormatError::Magic { expected: "an idx file of bytes", wanted, found }));
    }
    let head = 4 + 4 * usize::from(dimensions);
    let Some((_, values)) = bytes.split_at_checked(head) else {
        let (wanted, found) = (head as u64 - 4, bytes.len() as u64 - 4);
        return Err(source.at_byte(4, FormatError::Length { wanted, found }));
    };
    let lengths = bytes[4..head].chunks_exact(4);
    let shape: Vec<usize> =
        lengths.map(|four| four.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte))).collect();
    let wanted = shape.iter().fold(1u64, |product, length| product.saturating_mul(*length as u64));
    if wanted != values.len() as u64 {
        return Err(source.at_byte(head, FormatError::Length { wanted, found: values.len() as u64 }));
    }
    Ok(IdxArray { shape, values })
}
