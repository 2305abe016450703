//! Every message survives the wire, and takes no more of it than promised.

use evenhand_protocol::chunk::{Assembler, PAYLOAD_BYTES_MAX, RESEND_AFTER_MS, Transfer};
use evenhand_protocol::codec::CodecKind;
use evenhand_protocol::envelope::{DecodeError, VERSION, decode, encode};
use evenhand_protocol::limits::MessageLimits;
use evenhand_protocol::message::Message;
use proptest::prelude::*;

use crate::{any, samples, seeded};

proptest! {
    #![proptest_config(seeded(256))]

    #[test]
    fn any_message_survives_the_wire(message in any::message(), payload_bytes_max in 64usize..2000) {
        let transfer = Transfer::new(encode(&message), payload_bytes_max).unwrap();
        let mut assembler = Assembler::new(MessageLimits::default(), RESEND_AFTER_MS);
        let packets: Vec<_> = transfer.chunks().collect();
        prop_assert!(packets.iter().all(|packet| packet.len() <= payload_bytes_max));
        let (last, first) = packets.split_last().unwrap();
        for packet in first {
            prop_assert_eq!(assembler.accept("node", packet, 0), Ok(None));
        }
        let bytes = assembler.accept("node", last, 0).unwrap().unwrap();
        let received = decode(&bytes, &MessageLimits::default()).unwrap();
        // Compared as bytes, where NaN equals itself.
        prop_assert_eq!(encode(&received), encode(&message));
    }
}

#[test]
fn every_kind_of_message_survives_the_wire() {
    for (name, message) in samples::messages() {
        assert_eq!(decode(&encode(&message), &MessageLimits::default()), Ok(message), "{name}");
    }
}

/// Bytes on the wire of one update of the default model, headers included.
fn wire_bytes(codec: CodecKind) -> usize {
    let transfer = Transfer::new(encode(&samples::update(codec, samples::DIM)), PAYLOAD_BYTES_MAX).unwrap();
    assert_eq!(transfer.count(), 1);
    transfer.chunk(0).unwrap().len()
}

#[test]
fn updates_are_as_small_as_promised() {
    let [f32, bf16, int8, top_k] = samples::CODECS.map(|codec| wire_bytes(codec) as f64);
    println!(
        "bytes of one update of {} parameters: f32 {f32}, bf16 {bf16}, int8 {int8}, top-k {top_k}",
        samples::DIM
    );
    let plain = 4.0 * samples::DIM as f64;
    assert!((f32 - plain).abs() <= 0.01 * plain, "{f32}");
    assert!(bf16 <= 0.51 * f32, "{bf16}");
    assert!(int8 <= 0.27 * f32, "{int8}");
    assert!(top_k <= 0.03 * f32, "{top_k}");
}

#[test]
fn another_version_is_named() {
    for theirs in [0, 1, 300] {
        let bytes = postcard::to_allocvec(&(theirs, "whatever they say")).unwrap();
        let error = decode(&bytes, &MessageLimits::default()).unwrap_err();
        assert_eq!(error, DecodeError::Version { theirs, ours: VERSION });
        assert!(
            error.to_string().contains(&theirs.to_string())
                && error.to_string().contains(&format!("speaks {VERSION}"))
        );
    }
}

#[test]
fn trailing_bytes_are_refused() {
    for (name, message) in samples::messages() {
        let mut bytes = encode(&message);
        bytes.extend([0; 3]);
        assert_eq!(decode(&bytes, &MessageLimits::default()), Err(DecodeError::Trailing(3)), "{name}");
    }
}

#[test]
fn no_beginning_of_a_message_is_a_message() {
    for (name, message) in samples::messages() {
        let bytes = encode(&message);
        for length in 0..bytes.len() {
            assert_eq!(
                decode(&bytes[..length], &MessageLimits::default()),
                Err(DecodeError::Malformed),
                "{name} {length}"
            );
        }
    }
}

#[test]
fn every_length_has_its_limit() {
    let ample = MessageLimits::default();
    let strict = [
        ("bytes of a message", MessageLimits { message_bytes_max: 1, ..ample }),
        ("entries of an update", MessageLimits { parameters_max: 1, ..ample }),
        ("weights", MessageLimits { parameters_max: 1, ..ample }),
        ("bytes of a token", MessageLimits { text_bytes_max: 1, ..ample }),
        ("bytes of a software version", MessageLimits { text_bytes_max: 5, ..ample }),
        ("missing chunks", MessageLimits { chunks_max: 1, ..ample }),
    ];
    for (expected, limits) in strict {
        let refused = |message: &Message| match decode(&encode(message), &limits) {
            Err(DecodeError::TooLong { what, .. }) => what == expected,
            _ => false,
        };
        assert!(samples::messages().iter().any(|(_, message)| refused(message)), "{expected}");
    }
}
