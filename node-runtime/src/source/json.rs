//! Readings in JSON, as lines or as messages.
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

use serde_json::Value;

use super::now_ms;
use super::number::{no_number, number};
use super::time::TimeReader;
use crate::reading::Reading;

/// Numbers whose paths are named where the configured one does not exist.
const NAMED_MAX: usize = 8;
/// The reason where a path is configured and the text has none.
const PLAIN_NUMBER: &str = "it is a plain number; set source.value and source.time to \"\"";
/// Depth of the objects that are searched for them.
const DEPTH_MAX: usize = 8;

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

    /// The reading in `text`, or the reason why there is none and the setting to change.
    pub fn reading(&mut self, text: &str) -> Result<Reading, String> {
        if self.value.is_empty() && self.time.is_none() {
            let value = number(text.trim(), false).ok_or_else(|| no_plain_number(text))?;
            return Ok(Reading { time_ms: now_ms(), value });
        }
        let root: Value = serde_json::from_str(text).map_err(|error| match number(text, false) {
            Some(_) => PLAIN_NUMBER.to_owned(),
            None => format!("it is no JSON ({error})"),
        })?;
        if root.is_number() {
            return Err(PLAIN_NUMBER.to_owned());
        }
        let value = match root.pointer(&self.value) {
            Some(Value::Number(value)) => value.as_f64().filter(|value| value.is_finite()),
            Some(Value::String(value)) => Some(number(value, false).ok_or_else(|| no_number(value, None))?),
            _ => None,
        };
        let value = value.ok_or_else(|| no_field("value", &self.value, &root))?;
        let time_ms = match &self.time {
            None => now_ms(),
            Some(time) => {
                let text = match root.pointer(time) {
                    Some(Value::Number(time)) => time.to_string(),
                    Some(Value::String(time)) => time.clone(),
                    _ => return Err(no_field("time", time, &root)),
                };
                self.times.read(&text).ok_or_else(|| self.times.no_time(&text))?
            }
        };
        Ok(Reading { time_ms, value })
    }
}

/// The reason why a whole text is no number.
fn no_plain_number(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(root @ (Value::Object(_) | Value::Array(_))) => {
            format!("it is JSON; set source.value to the path of the value{}", numbers_of(&root))
        }
        Ok(Value::String(text)) => no_number(&text, None),
        _ => no_number(text, None),
    }
}

/// The reason why `path` names nothing in `root`.
fn no_field(key: &str, path: &str, root: &Value) -> String {
    let (wanted, path) =
        (if key == "time" { "time" } else { "number" }, path.trim_start_matches('/').replace('/', "."));
    format!("it has no {wanted} at {path:?}; set source.{key} to a path that it has{}", numbers_of(root))
}

/// `, such as a.b, c`: the paths of the first numbers in `root`.
fn numbers_of(root: &Value) -> String {
    let mut paths = Vec::new();
    add_numbers(root, &mut Vec::new(), &mut paths);
    if paths.is_empty() { String::new() } else { format!(", such as {}", paths.join(", ")) }
}

fn add_numbers(value: &Value, steps: &mut Vec<String>, paths: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Number(_) if paths.len() < NAMED_MAX && !steps.is_empty() => {
            return paths.push(steps.join("."));
        }
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => {
            items.iter().take(NAMED_MAX).enumerate().map(|(at, value)| (at.to_string(), value)).collect()
        }
        _ => return,
    };
    for (name, child) in children {
        if paths.len() < NAMED_MAX && steps.len() < DEPTH_MAX {
            steps.push(name);
            add_numbers(child, steps, paths);
            steps.pop();
        }
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
        JsonFields::new(value, time, times).reading(text).ok().map(|reading| (reading.time_ms, reading.value))
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

    #[test]
    fn the_reason_and_the_setting_are_named() {
        let reason = |value: &str, time: &str, text: &str| {
            let times = TimeReader::new(TimeFormat::Iso, LocalTimeZone::default());
            JsonFields::new(value, time, times).reading(text).unwrap_err()
        };
        let tasmota = r#"{"Time":"2024-01-01T00:00:00","ENERGY":{"Total":31.2,"Power":84}}"#;
        let said = reason("ENERGY.power", "Time", tasmota);
        assert!(
            said.contains("at \"ENERGY.power\"; set source.value") && said.contains("ENERGY.Power"),
            "{said}"
        );
        assert!(reason("ENERGY.Power", "time", tasmota).contains("set source.time"));
        assert!(
            reason("", "", tasmota).contains("set source.value to the path of the value, such as ENERGY")
        );
        assert!(reason("power", "", "230.5").contains("plain number; set source.value"));
        assert!(reason("", "", "unavailable").contains("no value at the moment"));
        assert!(reason("p", "", r#"{"p":"1,5"}"#).contains("decimal comma"));
        assert!(reason("p", "t", r#"{"p":1,"t":1704067200}"#).contains("source.time_format = \"unix-s\""));
        assert!(reason("p", "", "{").contains("no JSON"));
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
