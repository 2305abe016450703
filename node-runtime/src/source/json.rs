//! Readings in JSON, as lines or as messages.
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

use serde_json::Value;

use super::time::TimeReader;
use super::{now_ms, number};
use crate::reading::Reading;

/// Paths of a reading in a JSON text.
#[derive(Debug, Clone)]
pub struct JsonFields {
    value: String,
    time: Option<String>,
    times: TimeReader,
}

impl JsonFields {
    /// `value` and `time` are paths like `ENERGY.Power`; an empty value path stands for the whole text, an empty time
    /// path for the time of arrival.
    pub fn new(value: &str, time: &str, times: TimeReader) -> Self {
        let time = (!time.is_empty()).then(|| pointer(time));
        Self { value: pointer(value), time, times }
    }

    /// The reading in `text`, if there is one.
    pub fn reading(&mut self, text: &str) -> Option<Reading> {
        if self.value.is_empty() && self.time.is_none() {
            return Some(Reading { time_ms: now_ms(), value: number(text.trim(), false)? });
        }
        let root: Value = serde_json::from_str(text).ok()?;
        let value = match root.pointer(&self.value)? {
            Value::Number(value) => value.as_f64().filter(|value| value.is_finite())?,
            Value::String(value) => number(value, false)?,
            _ => return None,
        };
        let time_ms = match &self.time {
            None => now_ms(),
            Some(time) => match root.pointer(time)? {
                Value::Number(time) => self.times.read(&time.to_string())?,
                Value::String(time) => self.times.read(time)?,
                _ => return None,
            },
        };
        Some(Reading { time_ms, value })
    }
}

/// `a.b.0` as the JSON pointer `/a/b/0`; a path that begins with `/` is a pointer already.
fn pointer(path: &str) -> String {
    if path.is_empty() || path.starts_with('/') {
        return path.to_owned();
    }
    path.split('.').map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::source::time::TimeFormat;
    use crate::time_zone::LocalTimeZone;
    use proptest::prelude::*;

    fn read(value: &str, time: &str, text: &str) -> Option<(i64, f64)> {
        let format = if time == "ts" { TimeFormat::UnixS } else { TimeFormat::Iso };
        let times = TimeReader::new(format, LocalTimeZone::default());
        JsonFields::new(value, time, times).reading(text).map(|reading| (reading.time_ms, reading.value))
    }

    #[test]
    fn messages_of_common_devices() {
        let tasmota = r#"{"Time":"2024-01-01T00:00:00","ENERGY":{"Total":31.2,"Power":84,"Current":0.366}}"#;
        assert_eq!(read("ENERGY.Power", "Time", tasmota), Some((1_704_067_200_000, 84.0)));
        let shelly = r#"{"id":0,"apower":132.5,"aenergy":{"total":12.3,"minute_ts":1704067200}}"#;
        assert_eq!(
            read("apower", "/aenergy/minute_ts", &shelly.replace("1704067200", "\"2024-01-01T00:00Z\""))
                .unwrap()
                .1,
            132.5
        );
        let shelly_em = r#"{"ts":1704067200.5,"params":{"em:0":{"total_act_power":-20.25}}}"#;
        assert_eq!(read("params.em:0.total_act_power", "ts", shelly_em), Some((1_704_067_200_500, -20.25)));
        let zigbee = r#"{"linkquality":99,"power":"12.5","last_seen":"2024-01-01T01:00:00+01:00"}"#;
        assert_eq!(read("power", "last_seen", zigbee), Some((1_704_067_200_000, 12.5)));
        assert_eq!(read("", "", " 230.5\n").unwrap().1, 230.5);
        assert_eq!(read("/a~1b/1", "t", r#"{"a/b":[1,2],"t":"1970-01-01"}"#), Some((0, 2.0)));
    }

    #[test]
    fn malformed_messages() {
        for text in ["", "unavailable", "nan", "inf", "{", "[]", "null", "\"\""] {
            assert_eq!(read("", "", text), None, "{text}");
            assert_eq!(read("power", "", text), None, "{text}");
        }
        for text in [r#"{"power":null}"#, r#"{"power":true}"#, r#"{"power":{}}"#, r#"{"power":1e999}"#] {
            assert_eq!(read("power", "", text), None, "{text}");
        }
        assert_eq!(read("power", "Time", r#"{"power":1}"#), None);
        assert_eq!(read("power", "Time", r#"{"power":1,"Time":"yesterday"}"#), None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_finite_reading_or_none(text in "\\PC{0,80}", value in "[a-z./~]{0,6}", json in r#"(\{"a":[0-9eE.+-]{0,8}\})|([0-9eE.+-]{0,12})"#) {
            for text in [&text, &json] {
                for value in [value.as_str(), "a", ""] {
                    if let Some((_, value)) = read(value, "", text) {
                        prop_assert!(value.is_finite());
                    }
                }
            }
        }
    }
}
