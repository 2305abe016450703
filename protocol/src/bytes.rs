//! Byte strings and float vectors as single length-prefixed blocks instead of element by element.

use alloc::vec::Vec;
use core::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

/// Writes `bytes` as one block.
pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

/// Reads one block.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    struct Block;
    impl Visitor<'_> for Block {
        type Value = Vec<u8>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a byte string")
        }
        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }
        fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }
    }
    deserializer.deserialize_bytes(Block)
}

/// `Vec<f32>` as little-endian bytes.
pub mod f32s {
    use super::*;

    /// Writes the floats as one block.
    pub fn serialize<S: Serializer>(values: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        serializer.serialize_bytes(&bytes)
    }

    /// Reads one block; its length must be a multiple of four.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f32>, D::Error> {
        let bytes = super::deserialize(deserializer)?;
        let (floats, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(D::Error::custom("a block of floats has a length divisible by four"));
        }
        Ok(floats.iter().map(|float| f32::from_le_bytes(*float)).collect())
    }
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
