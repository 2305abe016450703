//! Numbers as a reader expects them.

/// A number of bytes with its unit.
pub fn bytes_text(bytes: u64) -> String {
    match bytes as f64 {
        b if b < 1e3 => format!("{bytes} B"),
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b if b < 1e9 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.2} GB", b / 1e9),
    }
}

/// Decimals that separate one node's probability from another's: those of the equal share, and three more digits.
pub fn probability_decimals(nodes: usize) -> usize {
    nodes.max(1).ilog10() as usize + 3
}

/// A positive number with four significant digits, without trailing zeros.
pub(crate) fn significant(value: f64) -> String {
    if !(value.is_finite() && value > 0.0) {
        return value.to_string();
    }
    let decimals = (3 - value.log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_are_significant_whatever_the_size() {
        for (value, text) in
            [(0.7, "0.7"), (1.0 / 150.0, "0.006667"), (0.00035, "0.00035"), (12.5, "12.5"), (1234.5, "1234")]
        {
            assert_eq!(significant(value), text);
        }
        assert_eq!(significant(0.0), "0");
    }
}
