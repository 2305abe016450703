//! Small files in the published formats.

use std::fmt::Write as _;
use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use evenhand_fleet::data::AsPublished;
use evenhand_fleet::data::{self, DataError, DataRequest, Dataset, SamplePool};
use evenhand_node::source::time::iso_text;
use flate2::Compression;
use flate2::write::GzEncoder;
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

pub(crate) const PAPER: DataRequest =
    DataRequest { as_published: AsPublished::Paper, seed: 1, samples_max: 1_000_000, owners_max: 3 };
pub(crate) const CODE: DataRequest = DataRequest { as_published: AsPublished::Code, ..PAPER };

pub(crate) fn load(dataset: Dataset, folder: &Path) -> Result<SamplePool, DataError> {
    data::load(dataset, Some(folder), &PAPER)
}

/// What is said of a folder whose data set does not load, with the folder as DIR.
pub(crate) fn complaint(dataset: Dataset, folder: &Path) -> String {
    load(dataset, folder).unwrap_err().to_string().replace(&folder.display().to_string(), "DIR")
}

pub(crate) fn put(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn idx(lengths: &[u32], values: &[u8]) -> Vec<u8> {
    let head = [0, 0, 8, lengths.len() as u8];
    let lengths = lengths.iter().flat_map(|length| length.to_be_bytes());
    head.into_iter().chain(lengths).chain(values.iter().copied()).collect()
}

/// Pictures whose pixels count up, with labels that count up.
pub(crate) fn mnist(samples: usize) -> (Vec<u8>, Vec<u8>) {
    let pixels: Vec<u8> = (0..samples * 784).map(|at| at as u8).collect();
    let labels: Vec<u8> = (0..samples).map(|at| (at % 10) as u8).collect();
    (idx(&[samples as u32, 28, 28], &pixels), idx(&[samples as u32], &labels))
}

pub(crate) fn put_mnist(folder: &Path, images: &[u8], labels: &[u8]) {
    put(folder, "mnist/train-images-idx3-ubyte", images);
    put(folder, "mnist/train-labels-idx1-ubyte", labels);
}

/// Records whose pixels are 0 in red, 255 in green and 51 in blue.
pub(crate) fn cifar(labels: &[u8]) -> Vec<u8> {
    let record = |label: &u8| [vec![*label], vec![0; 1024], vec![255; 1024], vec![51; 1024]].concat();
    labels.iter().flat_map(record).collect()
}

pub(crate) fn npy(shape: &str, values: &[u8]) -> Vec<u8> {
    let mut head = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}");
    while !(10 + head.len() + 1).is_multiple_of(64) {
        head.push(' ');
    }
    head.push('\n');
    let length = (head.len() as u16).to_le_bytes();
    [&b"\x93NUMPY\x01\x00"[..], &length, head.as_bytes(), values].concat()
}

pub(crate) fn npz(members: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Two pictures: every pixel of sample s is (s, s + 100, s + 200).
pub(crate) fn pathmnist(split: &str, labels: &[u8], method: CompressionMethod) -> Vec<u8> {
    let pixels: Vec<u8> = (0..labels.len() as u8)
        .flat_map(|sample| [sample, sample + 100, sample + 200].into_iter().cycle().take(28 * 28 * 3))
        .collect();
    let images = npy(&format!("({}, 28, 28, 3)", labels.len()), &pixels);
    let labels = npy(&format!("({}, 1)", labels.len()), labels);
    npz(&[(&format!("{split}_images.npy"), images), (&format!("{split}_labels.npy"), labels)], method)
}

/// Feature f of sample s is f + s / 10; labels of the first horizon are 1, 2, 3, 1, …
pub(crate) fn fi2010(samples: usize) -> Vec<String> {
    let row = |row: usize| {
        let cell = |sample: usize| match row {
            0..144 => format!("{:.7e}", row as f64 + sample as f64 / 10.0),
            144 => (sample % 3 + 1).to_string(),
            _ => "2".to_owned(),
        };
        (0..samples).map(cell).collect::<Vec<_>>().join("  ")
    };
    (0..149).map(row).collect()
}

pub(crate) fn put_fi2010(folder: &Path, rows: &[String]) {
    put(folder, "fi2010/Train_Dst_NoAuction_ZScore_CF_3.txt", (rows.join("\n") + "\n").as_bytes());
}

/// The load of quarter hour `at`: a daily wave that grows.
pub(crate) fn load_of(at: usize) -> f64 {
    50_000.0 + at as f64 / 10.0 + 8_000.0 * (at as f64 / 96.0 * std::f64::consts::TAU).sin()
}

pub(crate) fn opsd(quarters: usize, column: &str) -> String {
    let begin_ms = 1_420_066_800_000;
    let mut text = format!("utc_timestamp,other,{column}\n");
    for at in 0..quarters {
        writeln!(text, "{},1,{}", iso_text(begin_ms + at as i64 * 900_000), load_of(at)).unwrap();
    }
    text
}

/// A household's half hours; `value` says how much.
pub(crate) fn meter(id: &str, half_hours: usize, value: impl Fn(usize) -> String) -> String {
    let begin_ms = 1_356_998_400_000;
    let mut text = "LCLid,tstp,energy(kWh/hh)\n".to_owned();
    for at in 0..half_hours {
        let time = iso_text(begin_ms + at as i64 * 1_800_000).replace('T', " ").replace('Z', ".0000000");
        writeln!(text, "{id},{time}, {} ", value(at)).unwrap();
    }
    text
}

pub(crate) fn steady(at: usize) -> String {
    format!("{:.3}", 0.2 + 0.1 * (at % 48) as f64 / 48.0)
}
