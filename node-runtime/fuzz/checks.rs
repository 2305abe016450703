// What must hold for any bytes. The fuzz targets and the ordinary tests run these same functions.

use evenhand_node::config::NodeConfig;
use evenhand_node::journal;
use evenhand_node::source::csv::{CsvConfig, CsvLine, CsvTable};
use evenhand_node::source::d0::{self, D0Config};
use evenhand_node::source::http::PolledAnswer;
use evenhand_node::source::json::JsonFields;
use evenhand_node::source::modbus::{
    self, ModbusConfig, RegisterNumber, RegisterRequest, RegisterTable, WordOrder,
};
use evenhand_node::source::p1::{self, P1Config, Telegrams};
use evenhand_node::source::sml::{self, SmlConfig, SmlTelegrams};
use evenhand_node::source::sunspec::{SunspecModel, SunspecValue, find_point};
use evenhand_node::source::time::{TimeFormat, TimeReader};
use evenhand_node::time_zone::LocalTimeZone;

type FuzzCheck = fn(&[u8]);

/// Every check by the name of its fuzz target and corpus.
pub(crate) const ALL: [(&str, FuzzCheck); 10] = [
    ("config", config),
    ("csv", csv),
    ("d0", d0),
    ("http", http),
    ("journal", journal),
    ("json", json),
    ("modbus", modbus),
    ("p1", p1),
    ("sml", sml),
    ("sunspec", sunspec),
];

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

/// An answer is the same text however it is cut, or it is refused.
pub(crate) fn http(bytes: &[u8]) {
    let text = |block: usize| {
        let mut answer = PolledAnswer::default();
        let ended = bytes.chunks(block).chain([&b""[..]]).find_map(|block| answer.push(block).transpose());
        ended.expect("an end is a text or an error").ok()
    };
    // An answer that is complete is not read further, however it is cut.
    if let (Some(one), Some(other)) = (text(1), text(bytes.len().max(1))) {
        assert_eq!(one, other);
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
            if let Ok(reading) =
                JsonFields::new(value, time, TimeReader::new(format, LocalTimeZone::default())).reading(&text)
            {
                assert!(reading.value.is_finite());
            }
        }
    }
}

/// An answer of a meter, on either channel, is a number, or it is refused.
pub(crate) fn modbus(bytes: &[u8]) {
    for (number, count) in [(RegisterNumber::U16, 1), (RegisterNumber::F32, 2), (RegisterNumber::F64, 4)] {
        let request = RegisterRequest { unit: 1, table: RegisterTable::Input, first: 0, count };
        let tcp = modbus::tcp_registers(bytes, 1, &request);
        for registers in [tcp, modbus::rtu_registers(bytes, &request)].into_iter().flatten() {
            for word_order in [WordOrder::HighFirst, WordOrder::LowFirst] {
                let settings = ModbusConfig { number, word_order, ..ModbusConfig::default() };
                assert!(
                    settings.reading(registers).is_ok_and(|reading| reading.value.is_finite()) || count > 1
                );
            }
        }
    }
}

/// A stream has the same readouts however it is cut; each is a finite reading, or none.
pub(crate) fn d0(bytes: &[u8]) {
    for telegram in iec_telegrams(bytes) {
        for obis in ["1.8.0", "1-0:16.7.0"] {
            let settings = D0Config { obis: obis.into(), ..D0Config::default() };
            match d0::reading(&telegram, &settings) {
                Ok(reading) => assert!(reading.value.is_finite()),
                Err(reason) => assert!(!reason.is_empty()),
            }
        }
    }
}

/// A stream has the same telegrams however it is cut; each is a finite reading, or none.
pub(crate) fn p1(bytes: &[u8]) {
    for telegram in iec_telegrams(bytes) {
        for accept_unchecked in [false, true] {
            let settings = P1Config { accept_unchecked, ..P1Config::default() };
            if let Ok(reading) = p1::reading(&telegram, &settings) {
                assert!(reading.value.is_finite());
            }
        }
    }
}

/// The content of a telegram is a finite reading, or none, and so is what has no checksum.
pub(crate) fn sml(bytes: &[u8]) {
    let mut telegrams = SmlTelegrams::default();
    telegrams.push(bytes);
    let seen: Vec<_> = std::iter::from_fn(|| telegrams.take()).collect();
    for content in seen.iter().map(Vec::as_slice).chain([bytes]) {
        if let Ok(reading) = sml::reading(content, &SmlConfig::default()) {
            assert!(reading.value.is_finite());
        }
    }
}

/// Registers of a model are a finite value, or none.
pub(crate) fn sunspec(bytes: &[u8]) {
    for model in [101, 103, 113, 201, 203, 213].into_iter().filter_map(SunspecModel::of) {
        for value in [SunspecValue::Power, SunspecValue::Energy, SunspecValue::EnergyExported] {
            if let Ok(point) = find_point(bytes, model, value) {
                assert!(point.value.is_finite());
            }
        }
    }
}

/// The telegrams of a stream, which are the same however it is cut.
fn iec_telegrams(bytes: &[u8]) -> Vec<Vec<u8>> {
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
    seen
}
