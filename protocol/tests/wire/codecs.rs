//! The codecs keep what they promise of the values.

use evenhand_protocol::codec::{CodecError, CodecKind, EncodedUpdate, ErrorFeedback, encode};
use proptest::collection::vec;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::{any, samples, seeded};

const BLOCK: usize = 128;

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn encoded(kind: CodecKind, vector: &[f32], seed: u64) -> EncodedUpdate {
    encode(kind, vector, &mut ErrorFeedback::default(), &mut rng(seed))
}

/// As gradients are: of very different sizes, of both signs, often zero.
fn gradient() -> impl Strategy<Value = Vec<f32>> {
    let entry = prop_oneof![
        Just(0.0f32),
        (-1.0f32..1.0, -6i32..6).prop_map(|(x, exponent)| x * 10f32.powi(exponent))
    ];
    vec(entry, 0..500)
}

proptest! {
    #![proptest_config(seeded(256))]

    #[test]
    fn f32_is_exact(vector in vec(any::<f32>(), 0..500)) {
        let decoded = encoded(CodecKind::F32, &vector, 0).decode(vector.len()).unwrap();
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&decoded), bits(&vector));
    }

    #[test]
    fn bf16_is_within_half_a_step(vector in gradient()) {
        let decoded = encoded(CodecKind::Bf16, &vector, 0).decode(vector.len()).unwrap();
        for (sent, received) in vector.iter().zip(&decoded) {
            prop_assert!((sent - received).abs() <= sent.abs() / 256.0, "{} became {}", sent, received);
        }
    }

    #[test]
    fn int8_is_within_one_step_of_its_block(vector in gradient(), seed: u64) {
        let decoded = encoded(CodecKind::Int8, &vector, seed).decode(vector.len()).unwrap();
        for (sent, received) in vector.chunks(BLOCK).zip(decoded.chunks(BLOCK)) {
            let step = sent.iter().fold(0f32, |max, value| max.max(value.abs())) / 127.0;
            for (sent, received) in sent.iter().zip(received) {
                prop_assert!((sent - received).abs() <= step * 1.001, "{} became {}", sent, received);
            }
        }
    }

    #[test]
    fn top_k_sends_the_largest_and_keeps_the_rest(vector in gradient(), per_mille in 1..=1000u16) {
        let mut feedback = ErrorFeedback::default();
        let update = encode(CodecKind::TopK { per_mille }, &vector, &mut feedback, &mut rng(0));
        let decoded = update.decode(vector.len()).unwrap();
        let wanted = (vector.len() * usize::from(per_mille)).div_ceil(1000);
        prop_assert_eq!(update.entries(), wanted);
        for ((sent, kept), original) in decoded.iter().zip(feedback.residual()).zip(&vector) {
            prop_assert_eq!(sent + kept, *original);
        }
        let smallest_sent = decoded.iter().filter(|value| **value != 0.0).fold(f32::INFINITY, |min, value| min.min(value.abs()));
        prop_assert!(feedback.residual().iter().all(|kept| kept.abs() <= smallest_sent));
    }

    /// Over many rounds, what was received and what is still kept add up to what was to be sent.
    #[test]
    fn top_k_loses_nothing_over_rounds(rounds in vec(vec(-8i16..8, 50), 1..40)) {
        let mut feedback = ErrorFeedback::default();
        let (mut wanted, mut received) = (vec![0f32; 50], vec![0f32; 50]);
        for round in rounds {
            // Small integers, whose sums are exact.
            let vector: Vec<f32> = round.iter().map(|value| f32::from(*value)).collect();
            let update = encode(CodecKind::TopK { per_mille: 100 }, &vector, &mut feedback, &mut rng(0));
            for (sum, value) in wanted.iter_mut().zip(&vector) { *sum += value; }
            for (sum, value) in received.iter_mut().zip(update.decode(50).unwrap()) { *sum += value; }
        }
        for ((wanted, received), kept) in wanted.iter().zip(&received).zip(feedback.residual()) {
            prop_assert_eq!(*wanted, received + kept);
        }
    }

    #[test]
    fn another_dimension_is_refused(codec in any::codec(), vector in gradient(), other in 0..600usize) {
        prop_assume!(other != vector.len());
        match (codec, encoded(codec, &vector, 0).decode(other)) {
            // Where the sent positions all fit, a sparse update cannot tell.
            (CodecKind::TopK { .. }, Ok(decoded)) => prop_assert_eq!(decoded.len(), other),
            (_, outcome) => {
                let refused = matches!(outcome, Err(CodecError::Dimension { expected, .. }) if expected == other);
                prop_assert!(refused, "{:?}", outcome);
            }
        }
    }

    #[test]
    fn what_is_not_finite_stays_so(
        codec in any::codec(),
        mut vector in vec(-1f32..1.0, 1..300),
        position: proptest::sample::Index,
        bad in prop_oneof![Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY)],
    ) {
        *position.get_mut(&mut vector) = bad;
        let decoded = encoded(codec, &vector, 0).decode(vector.len()).unwrap();
        prop_assert!(decoded.iter().any(|value| !value.is_finite()));
    }

    #[test]
    fn names_of_codecs_are_read_back(codec in any::codec()) {
        prop_assert_eq!(codec.to_string().parse(), Ok(codec));
    }
}

proptest! {
    #![proptest_config(seeded(8))]
    /// The mean of n encodings lies within five standard errors of the vector.
    #[test]
    fn int8_is_unbiased(vector in vec(-1f32..1.0, 1..200), seed: u64) {
        const ENCODINGS: usize = 4000;
        let mut rng = rng(seed);
        let mut sums = vec![0f64; vector.len()];
        for _ in 0..ENCODINGS {
            let update = encode(CodecKind::Int8, &vector, &mut ErrorFeedback::default(), &mut rng);
            for (sum, value) in sums.iter_mut().zip(update.decode(vector.len()).unwrap()) {
                *sum += f64::from(value);
            }
        }
        for (block, sums) in vector.chunks(BLOCK).zip(sums.chunks(BLOCK)) {
            let step = f64::from(block.iter().fold(0f32, |max, value| max.max(value.abs()))) / 127.0;
            let standard_error = 0.5 * step / (ENCODINGS as f64).sqrt();
            for (value, sum) in block.iter().zip(sums) {
                let bias = sum / ENCODINGS as f64 - f64::from(*value);
                prop_assert!(bias.abs() <= 5.0 * standard_error, "{} is off by {}", value, bias);
            }
        }
    }
}

#[test]
fn feedback_survives_saving() {
    let mut feedback = ErrorFeedback::default();
    encode(CodecKind::TopK { per_mille: 10 }, &samples::vector(100), &mut feedback, &mut rng(0));
    let saved = postcard::to_allocvec(&feedback).unwrap();
    assert_eq!(postcard::from_bytes::<ErrorFeedback>(&saved), Ok(feedback.clone()));
    let readable = serde_json::to_string(&feedback).unwrap();
    assert_eq!(serde_json::from_str::<ErrorFeedback>(&readable).unwrap(), feedback);
}

#[test]
fn feedback_of_another_model_or_codec_is_forgotten() {
    let top_k = CodecKind::TopK { per_mille: 10 };
    let mut feedback = ErrorFeedback::default();
    encode(top_k, &samples::vector(100), &mut feedback, &mut rng(0));
    let fresh = encoded(top_k, &samples::vector(99), 0);
    assert_eq!(encode(top_k, &samples::vector(99), &mut feedback, &mut rng(0)), fresh);
    encode(CodecKind::F32, &samples::vector(99), &mut feedback, &mut rng(0));
    assert_eq!(feedback, ErrorFeedback::default());
}

#[test]
fn feedback_recovers_from_what_is_not_finite() {
    let top_k = CodecKind::TopK { per_mille: 1 };
    let mut feedback = ErrorFeedback::default();
    encode(top_k, &[f32::NAN; 10], &mut feedback, &mut rng(0));
    let update = encode(top_k, &[1.0; 10], &mut feedback, &mut rng(0));
    assert!(update.decode(10).unwrap().iter().all(|value| value.is_finite()));
}

#[test]
fn unknown_codecs_are_refused() {
    for text in ["", "F32", "int4", "top-k:", "top-k:0", "top-k:1001", "top-k:x"] {
        assert!(text.parse::<CodecKind>().is_err(), "{text}");
    }
}
