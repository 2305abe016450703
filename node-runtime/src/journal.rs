//! The journal's format: entries one after the other, each with its length and a checksum.

use evenhand_protocol::identity::Digest;

use crate::core::JournalEntry;

/// Part of every checksum, so that a journal of another format does not decode.
const FORM: &[u8] = b"evenhand journal 2";
const CHECKSUM_BYTES: usize = 4;
const LENGTH_BYTES: usize = 4;

/// The bytes of one entry.
pub fn record(entry: &JournalEntry) -> Vec<u8> {
    let body = postcard::to_allocvec(entry).expect("an entry holds nothing that postcard cannot write");
    let length = u32::try_from(body.len()).expect("a batch is far smaller than 4 GiB");
    [&length.to_le_bytes(), &checksum(&body)[..], &body].concat()
}

/// The entries in `bytes`, and the number of bytes they occupy.
///
/// The rest is half an entry that a crash left, or damage.
pub fn read(bytes: &[u8]) -> (Vec<JournalEntry>, usize) {
    let mut entries = Vec::new();
    let mut whole = 0;
    while let Some((entry, length)) = first(&bytes[whole..]) {
        entries.push(entry);
        whole += length;
    }
    (entries, whole)
}

/// The entry at the beginning of `bytes`, and its length.
fn first(bytes: &[u8]) -> Option<(JournalEntry, usize)> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    let (sum, rest) = rest.split_first_chunk::<CHECKSUM_BYTES>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let body = rest.get(..length)?;
    (*sum == checksum(body)).then_some(())?;
    let (entry, after) = postcard::take_from_bytes(body).ok()?;
    after.is_empty().then_some((entry, LENGTH_BYTES + CHECKSUM_BYTES + length))
}

fn checksum(body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let Digest(digest) = Digest::of(&[FORM, body].concat());
    std::array::from_fn(|at| digest[at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::{InputBatch, LabelledRow, Reading, RowTarget};
    use proptest::prelude::*;

    fn any_entry() -> impl Strategy<Value = JournalEntry> {
        let reading = (any::<i64>(), -1e9f64..1e9).prop_map(|(time_ms, value)| Reading { time_ms, value });
        let target =
            prop_oneof![any::<u32>().prop_map(RowTarget::Class), (-1f32..1.0).prop_map(RowTarget::Value)];
        let row = (prop::collection::vec(-1f32..1.0, 0..5), target)
            .prop_map(|(features, target)| LabelledRow { features, target });
        let batch = prop_oneof![
            prop::collection::vec(reading, 0..5).prop_map(InputBatch::Readings),
            prop::collection::vec(row, 0..5).prop_map(InputBatch::Rows),
        ];
        let side = prop::option::of("[a-z]{1,8}");
        (any::<u64>(), any::<u32>(), side, batch)
            .prop_map(|(number, rounds_read, side, batch)| JournalEntry { number, rounds_read, side, batch })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_up_to_where_it_breaks(entries in prop::collection::vec(any_entry(), 1..6), cut: prop::sample::Index, flip: prop::sample::Index) {
            let records: Vec<Vec<u8>> = entries.iter().map(record).collect();
            let bytes = records.concat();
            prop_assert_eq!(read(&bytes), (entries.clone(), bytes.len()));
            let whole_at = |end: usize| {
                let mut length = 0;
                records.iter().take_while(|record| { length += record.len(); length <= end }).count()
            };
            let cut = cut.index(bytes.len());
            prop_assert_eq!(read(&bytes[..cut]).0, &entries[..whole_at(cut)]);
            let flip = flip.index(bytes.len());
            let mut garbled = bytes.clone();
            garbled[flip] ^= 0x10;
            prop_assert_eq!(read(&garbled).0, &entries[..whole_at(flip)]);
        }

        #[test]
        fn any_bytes_are_entries_or_not(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let (entries, whole) = read(&bytes);
            prop_assert!(whole <= bytes.len() && (entries.is_empty() == (whole == 0)));
        }
    }
}
