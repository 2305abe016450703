//! Decimal numbers in text.
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

/// A number with a decimal point or comma; surrounding spaces are ignored.
pub(super) fn number(text: &str, decimal_comma: bool) -> Option<f64> {
    let text = text.trim();
    let value: f64 = if decimal_comma { text.replacen(',', ".", 1).parse() } else { text.parse() }.ok()?;
    value.is_finite().then_some(value)
}

/// The reason why `text` is no number, with the setting to change; `decimal_comma` is none where it is no setting.
pub(super) fn no_number(text: &str, decimal_comma: Option<bool>) -> String {
    let text = text.trim();
    match decimal_comma {
        Some(comma) if number(text, !comma).is_some() => {
            let mark = if comma { "point" } else { "comma" };
            format!("{text:?} has a decimal {mark}; set source.decimal_comma = {}", !comma)
        }
        None if number(text, true).is_some() => {
            format!("{text:?} has a decimal comma; numbers are written with a point here")
        }
        _ if ["unavailable", "unknown", "none", "null"].contains(&text.to_lowercase().as_str()) => {
            format!(
                "{text:?}: the sensor has no value at the moment; if it stays so, look whether it is connected"
            )
        }
        _ => format!("{text:?} is no number; name what holds the value"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_to_change_is_named() {
        assert_eq!(
            (number(" 1,5 ", true), number("1,5", false), number("1e999", false)),
            (Some(1.5), None, None)
        );
        assert!(no_number("1,5", Some(false)).ends_with("set source.decimal_comma = true"));
        assert!(no_number("1.5", Some(true)).contains("1.5"));
        assert!(no_number("1,5", None).contains("with a point"));
        assert!(no_number("unavailable", None).contains("look whether it is connected"));
        assert!(no_number("W", None).contains("no number"));
    }
}
