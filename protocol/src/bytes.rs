//! Byte strings and vectors of numbers as single length-prefixed blocks instead of element by element.
//!
//! A block is read by copying a slice of the input, so its length is known to be backed by bytes that
//! arrived before anything is allocated.

use alloc::vec::Vec;
use core::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserializer, Serializer};

/// The visitor that turns one block into its value.
struct Block<F>(F);

impl<'de, T, F: FnOnce(&[u8]) -> Option<T>> Visitor<'de> for Block<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a block of bytes that holds whole elements")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<T, E> {
        (self.0)(bytes).ok_or_else(|| E::invalid_length(bytes.len(), &"whole elements"))
    }

    /// For formats without byte strings, such as JSON, in which state may be saved.
    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<T, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}

fn elements<T, const N: usize>(bytes: &[u8], read: fn([u8; N]) -> T) -> Option<Vec<T>> {
    let (elements, rest) = bytes.as_chunks::<N>();
    rest.is_empty().then(|| elements.iter().map(|element| read(*element)).collect())
}

/// Writes `bytes` as one block.
pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

/// Reads one block.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    deserializer.deserialize_bytes(Block(|bytes: &[u8]| Some(bytes.to_vec())))
}

macro_rules! little_endian {
    ($(#[$doc:meta])* $module:ident, $element:ty) => {
        $(#[$doc])*
        pub mod $module {
            use super::*;

            /// Writes the numbers as one block.
            pub fn serialize<S: Serializer>(values: &[$element], serializer: S) -> Result<S::Ok, S::Error> {
                let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                serializer.serialize_bytes(&bytes)
            }

            /// Reads one block, whose length must be a whole number of elements.
            pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<$element>, D::Error> {
                deserializer.deserialize_bytes(Block(|bytes: &[u8]| elements(bytes, <$element>::from_le_bytes)))
            }
        }
    };
}

little_endian! {
    /// `Vec<f32>` as little-endian bytes.
    f32s, f32
}

little_endian! {
    /// `Vec<u16>` as little-endian bytes.
    u16s, u16
}

little_endian! {
    /// `Vec<i8>` as bytes.
    i8s, i8
}

/// `Option<Vec<f32>>` as an optional block.
pub mod optional_f32 {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize)]
    struct Borrowed<'a>(#[serde(serialize_with = "super::f32s::serialize")] &'a [f32]);

    #[derive(Deserialize)]
    struct Owned(#[serde(deserialize_with = "super::f32s::deserialize")] Vec<f32>);

    /// Writes the floats, if any, as one block.
    pub fn serialize<S: Serializer>(values: &Option<Vec<f32>>, serializer: S) -> Result<S::Ok, S::Error> {
        values.as_deref().map(Borrowed).serialize(serializer)
    }

    /// Reads an optional block.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<f32>>, D::Error> {
        Ok(Option::<Owned>::deserialize(deserializer)?.map(|owned| owned.0))
    }
}
