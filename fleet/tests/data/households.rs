//! Households in one or several files.

use std::path::Path;

use evenhand_fleet::data::{self, DataRequest, Dataset, SamplePool};
use tempfile::{TempDir, tempdir};

use crate::fixtures::*;

const HEAD: &str = "LCLid,tstp,energy(kWh/hh)";
const LONDON: &str = "; get the file again from https://data.london.gov.uk/dataset/smartmeter-energy-use-data-in-london-households";

fn folder_with(files: &[(&str, &str)]) -> TempDir {
    let folder = tempdir().unwrap();
    files.iter().for_each(|(name, text)| put(folder.path(), &format!("meters/{name}"), text.as_bytes()));
    folder
}

fn code(folder: &Path) -> SamplePool {
    data::load(Dataset::Meters, Some(folder), &CODE).unwrap()
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().skip(1).collect()
}

fn table(lines: &[&str]) -> String {
    format!("{HEAD}\n{}\n", lines.join("\n"))
}

#[test]
fn a_household_in_several_files_counts_once() {
    let (one, two) = (meter("MAC000002", 1500, steady), meter("MAC000003", 1600, steady));
    let once = code(folder_with(&[("MAC000002.csv", &one), ("MAC000003.csv", &two)]).path());
    assert_eq!(once.owners.as_ref().map(Vec::len), Some(2));
    let block = table(&[lines(&two), lines(&one)].concat());
    let twice = [("MAC000002.csv", &*one), ("MAC000003.csv", &*two), ("block_0.csv", &*block)];
    assert_eq!(code(folder_with(&twice).path()), once);
    let all = ["MAC000002.csv", "MAC000003.csv", "MAC000004.csv", "block_7.csv"].map(|name| (name, &*one));
    assert_eq!(code(folder_with(&all).path()).owners.map(|owners| owners.len()), Some(1));
}

#[test]
fn readings_in_several_files_are_one_series() {
    let (one, two) = (meter("MAC000002", 1500, steady), meter("MAC000003", 1500, steady));
    let whole = code(folder_with(&[("block_0.csv", &table(&[lines(&one), lines(&two)].concat()))]).path());
    // The first household is cut, out of order and with 100 readings recorded twice, where the second begins.
    let (one, two) = (lines(&one), lines(&two));
    let begin = table(&[&one[900..], &two[1400..]].concat());
    let end = table(&[&two[..1400], &one[..1000]].concat());
    let cut = folder_with(&[("LCL-June2015v2_0.csv", &begin), ("LCL-June2015v2_1.csv", &end)]);
    assert_eq!(code(cut.path()), whole);
    for seed in 0..4 {
        let request = DataRequest { seed, ..PAPER };
        let pool = data::load(Dataset::Meters, Some(cut.path()), &request).unwrap();
        assert_eq!(pool, whole, "whichever file comes first");
    }
}

#[test]
fn households_are_taken_in_the_order_of_completion() {
    let meters = ["MAC000002", "MAC000003", "MAC000004"].map(|id| meter(id, 1500, steady));
    let shared = table(&[&lines(&meters[0])[..700], &lines(&meters[1])[..]].concat());
    let rest = table(&lines(&meters[0])[700..]);
    let files = [("block_0.csv", &*shared), ("block_1.csv", &*meters[2]), ("block_2.csv", &*rest)];
    let request = |owners_max| DataRequest { owners_max, samples_max: 10 * owners_max, ..CODE };
    let folder = folder_with(&files);
    for owners_max in 1..=3 {
        let pool = data::load(Dataset::Meters, Some(folder.path()), &request(owners_max)).unwrap();
        assert_eq!((pool.owners.unwrap().len(), pool.note), (owners_max, None));
    }
}

#[test]
fn the_columns_of_the_full_publication_are_known() {
    let text = meter("MAC000002", 1500, steady);
    let expected = code(folder_with(&[("MAC000002.csv", &text)]).path());
    let full: String = lines(&text).iter().map(|line| line.replacen(',', ",Std,", 1) + "\n").collect();
    let full = format!("LCLid,stdorToU,DateTime,KWH/hh (per half hour) \n{full}");
    for name in ["LCL-June2015v2_0.csv", "CC_LCL-FullData.csv"] {
        assert_eq!(code(folder_with(&[(name, &full)]).path()), expected, "{name}");
    }
}

#[test]
fn readings_that_contradict_each_other_are_refused() {
    let text = meter("MAC000002", 1500, steady);
    let other = table(&["MAC000002,2013-01-01 00:30:00.0000000, 7.5 "]);
    let folder = folder_with(&[("MAC000002.csv", &text), ("block_0.csv", &other)]);
    let said = data::load(Dataset::Meters, Some(folder.path()), &CODE).unwrap_err().to_string();
    let expected = "DIR/meters/block_0.csv, line 2: MAC000002 has 7.5 at 2013-01-01T00:30:00Z, \
                    but DIR/meters/MAC000002.csv, line 3, says 0.202";
    assert_eq!(said.replace(&folder.path().display().to_string(), "DIR"), format!("{expected}{LONDON}"));
    // What was not measured contradicts nothing.
    let silent = table(&["MAC000002,2013-01-01 00:30:00.0000000, null "]);
    let folder = folder_with(&[("MAC000002.csv", &text), ("block_0.csv", &silent)]);
    assert_eq!(code(folder.path()).owners.unwrap().len(), 1);
}

#[test]
fn a_reading_without_an_owner_is_refused() {
    let text = meter("MAC000002", 1500, steady) + " ,2014-01-01 00:00:00, 0.1\n";
    let folder = folder_with(&[("MAC000002.csv", &text)]);
    assert_eq!(
        complaint(Dataset::Meters, folder.path()),
        format!(
            "DIR/meters/MAC000002.csv, line 1502: nothing in column 1, which says whose reading this is{LONDON}"
        )
    );
}
