// What must hold for any bytes. The fuzz targets and the ordinary tests run these same functions.

use evenhand_node::config::NodeConfig;
use evenhand_node::journal;
use evenhand_node::source::csv::{CsvConfig, CsvLine, CsvTable};
use evenhand_node::source::json::JsonFields;
use evenhand_node::source::modbus::{self, ModbusConfig, RegisterNumber, WordOrder};
use evenhand_node::source::p1::{self, P1Config, Telegrams};
use evenhand_node::source::time::{TimeFormat, TimeReader};
use evenhand_node::time_zone::LocalTimeZone;

type FuzzCheck = fn(&[u8]);

/// Every check by the name of its fuzz target and corpus.
pub(crate) const ALL: [(&str, FuzzCheck); 6] =
    [("config", config), ("csv", csv), ("journal", journal), ("json", json), ("modbus", modbus), ("p1", p1)];

/// A text is a configuration that can be written and read again, or it is refused with a sentence.
pub(crate) fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match NodeConfig::parse(text) {
        Ok(config) => {
            let written = toml::to_string(&config).expect("a configuration can be written");
            assert_eq!(NodeConfig::parse(&written).expect("and read again"), config);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The lines of a file are finite readings or rows, or counted as malformed.
pub(crate) fn csv(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for (label_column, time_format) in
        [("", TimeFormat::Iso), ("", TimeFormat::UnixS), ("1", TimeFormat::Iso)]
    {
        for header in [false, true] {
            let settings = CsvConfig {
                header,
                time_column: "1".into(),
                value_column: "2".into(),
                label_column: label_column.into(),
                time_format,
                ..CsvConfig::default()
            };
            let mut table = CsvTable::new(settings);
            for line in text.lines() {
                if let Ok(CsvLine::Reading(reading)) = table.read(line) {
                    assert!(reading.value.is_finite());
                }
            }
        }
    }
}

/// A journal is read up to where it is damaged, and what was read would be written the same.
pub(crate) fn journal(bytes: &[u8]) {
    let (entries, whole) = journal::read(bytes);
    let written: Vec<u8> = entries.iter().flat_map(journal::record).collect();
    assert_eq!(journal::read(&written).1, written.len());
    assert!(whole <= bytes.len() && written.len() <= whole);
}

/// A line or an MQTT message is a finite reading, or none.
pub(crate) fn json(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for value in ["", "ENERGY.Power", "/a~1b/0", "value"] {
        for (time, format) in [("", TimeFormat::Iso), ("Time", TimeFormat::Iso), ("ts", TimeFormat::UnixS)] {
            if let Some(reading) =
                JsonFields::new(value, time, TimeReader::new(format, LocalTimeZone::default())).reading(&text)
            {
                assert!(reading.value.is_finite());
            }
        }
    }
}

/// An answer of a meter is a number, or it is refused.
pub(crate) fn modbus(bytes: &[u8]) {
    for number in [RegisterNumber::U16, RegisterNumber::I32, RegisterNumber::F32, RegisterNumber::F64] {
        for word_order in [WordOrder::HighFirst, WordOrder::LowFirst] {
            let settings = ModbusConfig { number, word_order, ..ModbusConfig::default() };
            let _ = modbus::decode(bytes, 1, &settings);
        }
    }
}

/// A stream has the same telegrams however it is cut; each is a finite reading, or none.
pub(crate) fn p1(bytes: &[u8]) {
    let telegrams = |block: usize| {
        let mut telegrams = Telegrams::default();
        let mut seen = Vec::new();
        for block in bytes.chunks(block) {
            telegrams.push(block);
            seen.extend(std::iter::from_fn(|| telegrams.take()));
        }
        seen
    };
    let seen = telegrams(2048);
    // A telegram that is too long is dropped when that is noticed, which depends on the blocks.
    if bytes.len() <= 16 * 1024 {
        assert_eq!(telegrams(1), seen);
    }
    for telegram in &seen {
        for accept_unchecked in [false, true] {
            let settings = P1Config { accept_unchecked, ..P1Config::default() };
            if let Some(reading) = p1::reading(telegram, &settings) {
                assert!(reading.value.is_finite());
            }
        }
    }
}
