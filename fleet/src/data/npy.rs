//! NumPy's format of one array: magic, version, a head that is a Python dictionary, then the values.

use super::files::Source;
use super::{DataError, Flaw};

const MAGIC: &[u8] = b"\x93NUMPY";

/// An array of bytes, row by row.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<u8>,
    /// Where in the file the values begin.
    pub(super) head: usize,
}

/// Reads an array of bytes.
pub(super) fn parse(source: &Source, mut bytes: Vec<u8>) -> Result<Array, DataError> {
    if !bytes.starts_with(MAGIC) {
        let found = format!("{:02x?}", &bytes[..bytes.len().min(MAGIC.len())]);
        let flaw = Flaw::Magic { expected: "an .npy array", wanted: format!("{MAGIC:02x?}"), found };
        return Err(source.at_byte(0, flaw));
    }
    // Version 1 counts its head in two bytes, later ones in four.
    let counted = match bytes.get(6) {
        Some(1) => 2,
        Some(2 | 3) => 4,
        other => return Err(source.at_byte(6, Flaw::Head(format!("version {other:?}")))),
    };
    let short = |at: usize, wanted: usize| {
        let found = bytes.len().saturating_sub(at) as u64;
        source.at_byte(at, Flaw::Length { wanted: wanted as u64, found })
    };
    let length = bytes.get(8..8 + counted).ok_or_else(|| short(8, counted))?;
    let length = length.iter().rev().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
    let begin = 8 + counted;
    let head = begin + length;
    let text = bytes.get(begin..head).ok_or_else(|| short(begin, length))?;
    let text = String::from_utf8_lossy(text);
    let shape = shape_of_bytes(&text)
        .ok_or_else(|| source.at_byte(begin, Flaw::Head(text.trim().chars().take(120).collect())))?;
    let wanted = shape.iter().fold(1u64, |product, length| product.saturating_mul(*length as u64));
    let found = (bytes.len() - head) as u64;
    if wanted != found {
        return Err(source.at_byte(head, Flaw::Length { wanted, found }));
    }
    bytes.drain(..head);
    Ok(Array { shape, values: bytes, head })
}

/// The shape of `{'descr': '|u1', 'fortran_order': False, 'shape': (718, 28, 28, 3), }`; none if it says anything else.
fn shape_of_bytes(head: &str) -> Option<Vec<usize>> {
    let after = |key: &str| {
        let rest = head.split_once(&format!("'{key}'"))?.1;
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    };
    let descr = after("descr")?;
    if !["'|u1'", "'u1'", "'<u1'"].iter().any(|bytes| descr.starts_with(bytes)) {
        return None;
    }
    if !after("fortran_order")?.starts_with("False") {
        return None;
    }
    let lengths = after("shape")?.strip_prefix('(')?.split_once(')')?.0;
    lengths
        .split(',')
        .map(str::trim)
        .filter(|length| !length.is_empty())
        .map(|length| length.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_other_arrays_are_refused() {
        let head = |descr, order, shape| {
            shape_of_bytes(&format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"))
        };
        assert_eq!(head("'|u1'", "False", "(2, 3)"), Some(vec![2, 3]));
        assert_eq!(head("'|u1'", "False", "(7,)"), Some(vec![7]));
        assert_eq!(head("'|u1'", "False", "()"), Some(vec![]));
        assert_eq!(head("'<f4'", "False", "(2, 3)"), None);
        assert_eq!(head("'|u1'", "True", "(2, 3)"), None);
        assert_eq!(head("'|u1'", "False", "(2, -3)"), None);
        assert_eq!(head("'|u1'", "False", "(2, 3"), None);
        assert_eq!(shape_of_bytes("{}"), None);
    }
}
