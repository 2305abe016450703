//! Broken files: one sentence with file and position.

use std::path::Path;

use evenhand_fleet::data::Dataset;
use tempfile::tempdir;
use zip::CompressionMethod;

use crate::fixtures::*;

const MNIST: &str = "; get the file again from http://yann.lecun.com/exdb/mnist";
const CIFAR: &str = "; get the file again from https://www.cs.toronto.edu/~kriz/cifar.html (binary version)";
const PATH: &str = "; get the file again from https://zenodo.org/record/6496656 (MedMNIST v2)";
const HFT: &str = "; get the file again from https://etsin.fairdata.fi/dataset/73eb48d7-4dbc-4a10-a52a-da745b47a649 (FI-2010)";
const OPSD: &str = "; get the file again from https://data.open-power-system-data.org/time_series/2020-10-06";
const LONDON: &str = "; get the file again from https://data.london.gov.uk/dataset/smartmeter-energy-use-data-in-london-households";

#[test]
fn broken_idx_files() {
    let (images, labels) = mnist(3);
    let said = |images: &[u8], labels: &[u8]| {
        let folder = tempdir().unwrap();
        put_mnist(folder.path(), images, labels);
        complaint(Dataset::Mnist, folder.path())
    };
    const IMAGES: &str = "DIR/mnist/train-images-idx3-ubyte";
    const LABELS: &str = "DIR/mnist/train-labels-idx1-ubyte";
    assert_eq!(
        said(&labels, &labels),
        format!(
            "{IMAGES}, byte 0: an idx file of bytes begins with [00, 00, 08, 03], here is [00, 00, 08, 01]{MNIST}"
        )
    );
    assert_eq!(
        said(&images[..10], &labels),
        format!("{IMAGES}, byte 4: 12 bytes should follow, there are 6{MNIST}")
    );
    assert_eq!(
        said(&images[..100], &labels),
        format!("{IMAGES}, byte 16: 2352 bytes should follow, there are 84{MNIST}")
    );
    assert_eq!(
        said(&idx(&[u32::MAX; 3], &[]), &labels),
        format!("{IMAGES}, byte 16: 18446744073709551615 bytes should follow, there are 0{MNIST}")
    );
    assert_eq!(
        said(&idx(&[1, 4, 4], &[0; 16]), &labels),
        format!("{IMAGES}, byte 4: images of shape [1, 4, 4], expected [n, 28, 28]{MNIST}")
    );
    assert_eq!(
        said(&images, &idx(&[2], &[1, 2])),
        format!("{LABELS}, byte 4: 2 labels for 3 samples{MNIST}")
    );
    assert_eq!(
        said(&images, &idx(&[3], &[1, 10, 2])),
        format!("{LABELS}, byte 9: label 10, but classes are 0 to 9{MNIST}")
    );
    assert_eq!(
        said(&idx(&[0, 28, 28], &[]), &idx(&[0], &[])),
        format!(
            "{IMAGES}, byte 4: no samples for mnist: the file holds no image; \
             get all of it from http://yann.lecun.com/exdb/mnist"
        )
    );
    let packed = gzip(&images);
    let cut = said(&packed[..packed.len() / 2], &labels);
    assert!(cut.starts_with(&format!("{IMAGES}, byte ")) && cut.contains("cannot be unpacked ("), "{cut}");
}

#[test]
fn broken_cifar_batches() {
    let said = |bytes: &[u8]| {
        let folder = tempdir().unwrap();
        put(folder.path(), "data_batch_2.bin", bytes);
        complaint(Dataset::Cifar10, folder.path())
    };
    let two = cifar(&[1, 2]);
    assert_eq!(
        said(&two[..4000]),
        format!("DIR/data_batch_2.bin, byte 3073: 3073 bytes should follow, there are 927{CIFAR}")
    );
    assert_eq!(
        said(&cifar(&[1, 11])),
        format!("DIR/data_batch_2.bin, byte 3073: label 11, but classes are 0 to 9{CIFAR}")
    );
    assert_eq!(
        said(&[]),
        "DIR/data_batch_2.bin, byte 0: no samples for cifar10: the file holds no record; \
         get all of it from https://www.cs.toronto.edu/~kriz/cifar.html (binary version)"
    );
}

#[test]
fn broken_npz_archives() {
    let said = |bytes: &[u8]| {
        let folder = tempdir().unwrap();
        put(folder.path(), "pathmnist.npz", bytes);
        complaint(Dataset::Pathmnist, folder.path())
    };
    let archive = |images: Vec<u8>, labels: Vec<u8>| {
        npz(&[("train_images.npy", images), ("train_labels.npy", labels)], CompressionMethod::Stored)
    };
    let (images, labels) = (npy("(1, 28, 28, 3)", &[0; 2352]), npy("(1, 1)", &[0]));
    const IMAGES: &str = "DIR/pathmnist.npz/train_images.npy";
    const LABELS: &str = "DIR/pathmnist.npz/train_labels.npy";

    let nothing = said(b"no archive");
    assert!(
        nothing.starts_with("DIR/pathmnist.npz, byte 0: cannot be unpacked (") && nothing.ends_with(PATH),
        "{nothing}"
    );
    assert_eq!(
        said(&npz(&[("val_images.npy", images.clone())], CompressionMethod::Stored)),
        format!(
            "DIR/pathmnist.npz, byte 0: no train_images.npy or test_images.npy; there are val_images.npy{PATH}"
        )
    );
    assert_eq!(
        said(&npz(&[("train_images.npy", images.clone())], CompressionMethod::Stored)),
        format!("DIR/pathmnist.npz, byte 0: no train_labels.npy; there are train_images.npy{PATH}")
    );
    assert_eq!(
        said(&npz(&[], CompressionMethod::Stored)),
        format!("DIR/pathmnist.npz, byte 0: no train_images.npy or test_images.npy; there are none{PATH}")
    );
    assert_eq!(
        said(&archive(b"\x93NUMPY".to_vec(), labels.clone())),
        format!("{IMAGES}, byte 6: 2 bytes should follow, there are 0{PATH}")
    );
    assert_eq!(
        said(&archive(b"\x93NUMPY\x09\x00".to_vec(), labels.clone())),
        format!("{IMAGES}, byte 6: an .npy array of version 9, expected 1 to 3{PATH}")
    );
    assert_eq!(
        said(&archive(b"NUMPY".to_vec(), labels.clone())),
        format!(
            "{IMAGES}, byte 0: an .npy array begins with [93, 4e, 55, 4d, 50, 59], here is [4e, 55, 4d, 50, 59]{PATH}"
        )
    );
    assert_eq!(
        said(&archive(images[..100].to_vec(), labels.clone())),
        format!("{IMAGES}, byte 10: 118 bytes should follow, there are 90{PATH}")
    );
    assert_eq!(
        said(&archive(images[..200].to_vec(), labels.clone())),
        format!("{IMAGES}, byte 128: 2352 bytes should follow, there are 72{PATH}")
    );
    assert_eq!(
        said(&archive(npy("(99999999999, 28, 28, 3)", &[0; 9]), labels.clone())),
        format!("{IMAGES}, byte 128: 235199999997648 bytes should follow, there are 9{PATH}")
    );
    let other = |word: &str, instead: &str| {
        let array = String::from_utf8_lossy(&npy("(1, 28, 28, 3)", &[])).replace(word, instead);
        [b"\x93", array.trim_start_matches('\u{fffd}').as_bytes(), &[0; 9408]].concat()
    };
    assert_eq!(
        said(&archive(other("|u1", "<f4"), labels.clone())),
        format!("{IMAGES}, byte 10: values of type '<f4', expected bytes ('|u1'){PATH}")
    );
    assert_eq!(
        said(&archive(other("False", "True "), labels.clone())),
        format!(
            "{IMAGES}, byte 10: an array column by column ('fortran_order': True), \
             expected row by row ('fortran_order': False){PATH}"
        )
    );
    assert_eq!(
        said(&archive(npy("(1, -28, 28, 3)", &[]), labels.clone())),
        format!(
            "{IMAGES}, byte 10: the head of the array is not understood: \
             {{'descr': '|u1', 'fortran_order': False, 'shape': (1, -28, 28, 3), }}{PATH}"
        )
    );
    assert_eq!(
        said(&archive(npy("(1, 784, 3)", &[0; 2352]), labels.clone())),
        format!("{IMAGES}, byte 0: images of shape [1, 784, 3], expected [n, 28, 28, 3]{PATH}")
    );
    assert_eq!(
        said(&archive(images.clone(), npy("(2, 1)", &[0, 1]))),
        format!("{LABELS}, byte 128: 2 labels for 1 samples{PATH}")
    );
    assert_eq!(
        said(&archive(images, npy("(1, 1)", &[9]))),
        format!("{LABELS}, byte 128: label 9, but classes are 0 to 8{PATH}")
    );
}

#[test]
fn broken_order_books() {
    let said = |change: &dyn Fn(&mut Vec<String>)| {
        let folder = tempdir().unwrap();
        let mut rows = fi2010(4);
        change(&mut rows);
        put_fi2010(folder.path(), &rows);
        complaint(Dataset::Hft, folder.path())
    };
    const FILE: &str = "DIR/fi2010/Train_Dst_NoAuction_ZScore_CF_3.txt";
    assert_eq!(said(&|rows| rows.truncate(100)), format!("{FILE}, line 101: 100 rows, expected 149{HFT}"));
    assert_eq!(
        said(&|rows| rows.push("1 1 1 1".into())),
        format!("{FILE}, line 150: 150 rows, expected 149{HFT}")
    );
    assert_eq!(said(&|rows| rows[2] = "1 2 3".into()), format!("{FILE}, line 3: 3 numbers, expected 4{HFT}"));
    assert_eq!(
        said(&|rows| rows[2] = "1 2 x3 4".into()),
        format!("{FILE}, line 3: \"x3\" in column 3 is no finite number{HFT}")
    );
    assert_eq!(
        said(&|rows| rows[7] = "nan 2 3 4".into()),
        format!("{FILE}, line 8: \"nan\" in column 1 is no finite number{HFT}")
    );
    assert_eq!(
        said(&|rows| rows[144] = "1 2 4 1".into()),
        format!("{FILE}, line 145: label 4, but classes are 1 to 3{HFT}")
    );
    assert_eq!(
        said(&|rows| rows[0].clear()),
        format!(
            "{FILE}, line 1: no samples for hft: the first row is empty; \
             get all of it from https://etsin.fairdata.fi/dataset/73eb48d7-4dbc-4a10-a52a-da745b47a649 (FI-2010)"
        )
    );
}

#[test]
fn broken_loads() {
    let said = |text: &str| {
        let folder = tempdir().unwrap();
        put(folder.path(), "time_series_15min_singleindex.csv", text.as_bytes());
        complaint(Dataset::Electricity, folder.path())
    };
    const FILE: &str = "DIR/time_series_15min_singleindex.csv";
    const HEAD: &str = "utc_timestamp,DE_load_MW";
    assert_eq!(
        said("utc_timestamp,AT_load\n"),
        format!(
            "{FILE}, line 1: no column DE_load_actual_entsoe_transparency or DE_load_MW; \
             there are utc_timestamp, AT_load{OPSD}"
        )
    );
    let first = "2015-01-01T00:00:00Z,1";
    assert_eq!(
        said(&format!("{HEAD}\n{first}\nyesterday,2\n")),
        format!("{FILE}, line 3: \"yesterday\" is no time such as 2015-01-01T00:00:00Z{OPSD}")
    );
    assert_eq!(
        said(&format!("{HEAD}\n{first}\n2015-01-01T00:15:00Z,inf\n")),
        format!("{FILE}, line 3: \"inf\" in column 2 is no finite number{OPSD}")
    );
    assert_eq!(
        said(&format!("{HEAD}\n{first}\n2015-01-01T00:15:00Z,1,2\n")),
        format!("{FILE}, line 3: 3 columns, expected 2{OPSD}")
    );
    assert_eq!(
        said(&format!("{HEAD}\n{first}\n{first}\n")),
        format!("{FILE}, line 3: time does not advance after 2015-01-01T00:00:00Z{OPSD}")
    );
    assert_eq!(
        said(&format!("{HEAD}\n{first}\n")),
        format!(
            "{FILE}: no samples for electricity: 1 readings, and the first sample comes after 1344; \
             get all of it from https://data.open-power-system-data.org/time_series/2020-10-06"
        )
    );
    assert_eq!(said(""), format!("{FILE}, line 1: no column utc_timestamp; there are none{OPSD}"));
}

#[test]
fn implausible_loads_and_dates_are_refused() {
    let said = |time: &str, load: &str| {
        let folder = tempdir().unwrap();
        let text = opsd(1500, "DE_load_MW") + &format!("{time},1,{load}\n");
        put(folder.path(), "electricity/de_load_15min_opsd_index.csv", text.as_bytes());
        load_or_complaint(Dataset::Electricity, folder.path())
    };
    const LINE: &str = "DIR/electricity/de_load_15min_opsd_index.csv, line 1502";
    let (soon, era) = ("2099-12-31T23:45:00Z", "is no time of a recording: those lie between 1970 and 2099");
    for load in ["0", "1000000", "", "NULL"] {
        assert_eq!(said(soon, load), "", "{load}");
    }
    for load in ["1e308", "-1", "1000000.1"] {
        let expected =
            format!("{LINE}: {load} in column 3 is no load in MW: those lie between 0 and 1000000{OPSD}");
        assert_eq!(said(soon, load), expected);
    }
    for time in
        ["2100-01-01T00:00:00Z", "9999-12-30T12:00:00Z", "0000-01-01T00:00:00Z", "1969-12-31T23:45:00Z"]
    {
        assert_eq!(said(time, "1"), format!("{LINE}: {time:?} {era}{OPSD}"));
    }

    let said = |value: &str| {
        let folder = tempdir().unwrap();
        put(
            folder.path(),
            "MAC000002.csv",
            meter("MAC000002", 1500, |at| if at == 7 { value.into() } else { steady(at) }).as_bytes(),
        );
        load_or_complaint(Dataset::Meters, folder.path())
    };
    for value in ["-1000", "1000"] {
        assert_eq!(said(value), "", "{value}");
    }
    for value in ["-1000.5", "1e300"] {
        let expected = format!(
            "DIR/MAC000002.csv, line 9: {value} in column 3 is no kWh in half an hour: those lie between -1000 and 1000{LONDON}"
        );
        assert_eq!(said(value), expected);
    }
}

/// Empty if it loads.
fn load_or_complaint(dataset: Dataset, folder: &Path) -> String {
    load(dataset, folder).map_or_else(|_| complaint(dataset, folder), |_| String::new())
}

#[test]
fn broken_meters() {
    let said = |text: &str| {
        let folder = tempdir().unwrap();
        put(folder.path(), "MAC000002.csv", text.as_bytes());
        complaint(Dataset::Meters, folder.path())
    };
    assert_eq!(
        said("LCLid,tstp,energy(kWh/hh)\nMAC000002,2013-01-01 00:00:00, high \n"),
        format!("DIR/MAC000002.csv, line 2: \"high\" in column 3 is no finite number{LONDON}")
    );
    assert_eq!(
        said("tstp,energy(kWh/hh)\n"),
        format!("DIR/MAC000002.csv, line 1: no column LCLid; there are tstp, energy(kWh/hh){LONDON}")
    );
    assert_eq!(
        said(&meter("MAC000002", 100, steady)),
        "DIR: no samples for meters: every household has less than 30 days of readings, or mostly zeros; \
         get all of it from https://data.london.gov.uk/dataset/smartmeter-energy-use-data-in-london-households"
    );
}
