//! Decimal numbers in text.
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

/// A number with a decimal point or comma; surrounding spaces are ignored.
pub(super) fn number(text: &str, decimal_comma: bool) -> Option<f64> {
    let text = text.trim();
    let value: f64 = if decimal_comma { text.replacen(',', ".", 1).parse() } else { text.parse() }.ok()?;
    value.is_finite().then_some(value)
}
