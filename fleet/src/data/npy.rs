//! NumPy's format of one array: magic, version, a head that is a Python dictionary, then the values.

use super::files::DataFile;
use super::{DataError, FormatError};

const MAGIC: &[u8] = b"\x93NUMPY";

/// An array of bytes, row by row.
#[derive(Debug)]
pub(super) struct NpyArray {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<u8>,
    /// The position of the values in the file.
    pub(super) head: usize,
}

/// Reads an array of bytes.
pub(super) fn parse(source: &DataFile, mut bytes: Vec<u8>) -> Result<NpyArray, DataError> {
    if !bytes.starts_with(MAGIC) {
        let found = format!("{:02x?}", &bytes[..bytes.len().min(MAGIC.len())]);
        let cause = FormatError::Magic { expected: "an .npy array", wanted: format!("{MAGIC:02x?}"), found };
        return Err(source.at_byte(0, cause));
    }
    // Version 1 counts its head in two bytes, later ones in four.
    let counted = match bytes.get(6) {
        Some(1) => 2,
        Some(2 | 3) => 4,
        Some(other) => return Err(source.at_byte(6, FormatError::Version(*other))),
        None => return Err(source.at_byte(6, FormatError::Length { wanted: 2, found: 0 })),
    };
    let short = |at: usize, wanted: usize| {
        let found = bytes.len().saturating_sub(at) as u64;
        source.at_byte(at, FormatError::Length { wanted: wanted as u64, found })
    };
    let length = bytes.get(8..8 + counted).ok_or_else(|| short(8, counted))?;
    let length = length.iter().rev().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
    let begin = 8 + counted;
    let head = begin.saturating_add(length);
    let text = bytes.get(begin..head).ok_or_else(|| short(begin, length))?;
    let text = String::from_utf8_lossy(text);
    let shape = shape_of_bytes(&text).map_err(|cause| source.at_byte(begin, cause))?;
    let wanted = shape.iter().fold(1u64, |product, length| product.saturating_mul(*length as u64));
    let found = (bytes.len() - head) as u64;
    if wanted != found {
        return Err(source.at_byte(head, FormatError::Length { wanted, found }));
    }
    bytes.drain(..head);
    Ok(NpyArray { shape, values: bytes, head })
}

/// The shape of `{'descr': '|u1', 'fortran_order': False, 'shape': (718, 28, 28, 3), }`, or what else it says.
fn shape_of_bytes(head: &str) -> Result<Vec<usize>, FormatError> {
    let unknown = || FormatError::Head(head.trim().chars().take(120).collect());
    let after = |key: &str| {
        let rest = head.split_once(&format!("'{key}'"))?.1;
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    };
    let descr = after("descr").ok_or_else(unknown)?;
    if !["'|u1'", "'u1'", "'<u1'"].iter().any(|bytes| descr.starts_with(bytes)) {
        let (found, _) = descr.split_once(", 'fortran_order'").unwrap_or((descr, ""));
        return Err(FormatError::Type(found.chars().take(40).collect()));
    }
    match after("fortran_order") {
        Some(order) if order.starts_with("False") => {}
        Some(order) if order.starts_with("True") => return Err(FormatError::Order),
        _ => return Err(unknown()),
    }
    let lengths = || Some(after("shape")?.strip_prefix('(')?.split_once(')')?.0);
    let lengths = lengths().ok_or_else(unknown)?.split(',').map(str::trim);
    lengths.filter(|length| !length.is_empty()).map(|length| length.parse().map_err(|_| unknown())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_other_arrays_are_refused() {
        let head = |descr, order, shape| {
            shape_of_bytes(&format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"))
        };
        assert_eq!(head("'|u1'", "False", "(2, 3)"), Ok(vec![2, 3]));
        assert_eq!(head("'|u1'", "False", "(7,)"), Ok(vec![7]));
        assert_eq!(head("'|u1'", "False", "()"), Ok(vec![]));
        assert_eq!(head("'<f4'", "False", "(2, 3)"), Err(FormatError::Type("'<f4'".into())));
        assert_eq!(head("'|u1'", "True", "(2, 3)"), Err(FormatError::Order));
        for (order, shape) in [("False", "(2, -3)"), ("False", "(2, 3"), ("Maybe", "(2, 3)")] {
            assert!(matches!(head("'|u1'", order, shape), Err(FormatError::Head(_))), "{order} {shape}");
        }
        assert_eq!(shape_of_bytes("{}"), Err(FormatError::Head("{}".into())));
    }
}
