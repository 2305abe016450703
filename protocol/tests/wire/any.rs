//! Any message that can be said.

use evenhand_protocol::chunk::TransferId;
use evenhand_protocol::codec::{Bf16, CodecKind, EncodedUpdate, ErrorFeedback, encode};
use evenhand_protocol::identity::{Digest, FederationId};
use evenhand_protocol::message::{
    Account, Answer, Birth, Declined, Life, LossKind, Manifest, MeasureRequest, Measured, Message,
    MissingChunks, Order, Phase, Refusal, SkillPermille, Status, Train, Update, UpdateKind, Why,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

pub(crate) fn codec() -> impl Strategy<Value = CodecKind> {
    prop_oneof![
        Just(CodecKind::F32),
        Just(CodecKind::Bf16),
        Just(CodecKind::Int8),
        (1..=1000u16).prop_map(|per_mille| CodecKind::TopK { per_mille }),
    ]
}

fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>().prop_map(Digest)
}

fn missing() -> impl Strategy<Value = MissingChunks> {
    (any::<[u8; 16]>(), vec(any::<u16>(), 0..50))
        .prop_map(|(transfer, chunks)| MissingChunks { transfer: TransferId(transfer), chunks })
}

fn encoded() -> impl Strategy<Value = EncodedUpdate> {
    (codec(), vec(any::<f32>(), 0..300), any::<u64>()).prop_map(|(codec, vector, seed)| {
        encode(codec, &vector, &mut ErrorFeedback::default(), &mut ChaCha8Rng::seed_from_u64(seed))
    })
}

fn manifest() -> impl Strategy<Value = Message> {
    let phases = vec![
        Phase::Enrolling,
        Phase::Exploring,
        Phase::Exploiting,
        Phase::Paused,
        Phase::Finished,
        Phase::Failed,
    ];
    ("[a-zA-Z0-9_.-]{1,64}", digest(), any::<u32>(), select(phases), any::<u32>()).prop_map(
        |(name, graph, parameters, phase, round)| {
            let federation = FederationId::new(&name).expect("the pattern allows valid names only");
            Message::Manifest(Manifest { federation, graph, parameters, phase, round })
        },
    )
}

fn status() -> impl Strategy<Value = Message> {
    let birth = (option::of(digest()), option::of(digest()), option::of(".{0,100}"), ".{0,100}")
        .prop_map(|(graph, weights, token, software)| Life::Born(Birth { graph, weights, token, software }));
    (any::<u64>(), prop_oneof![birth, Just(Life::Dead)])
        .prop_map(|(session, life)| Message::Status(Status { session, life }))
}

fn train() -> impl Strategy<Value = Order> {
    let losses =
        vec![LossKind::Mse, LossKind::CrossEntropy, LossKind::Nll, LossKind::Huber, LossKind::Pinball];
    let kind = prop_oneof![
        Just(UpdateKind::Gradient),
        Just(UpdateKind::Adam),
        any::<f32>().prop_map(|momentum| UpdateKind::Momentum { momentum }),
        any::<(u32, f32, f32)>().prop_map(|(epochs, learning_rate, momentum)| UpdateKind::Epochs {
            epochs,
            learning_rate,
            momentum
        }),
    ];
    let weights = option::of(vec(any::<f32>(), 0..300));
    (any::<(u32, u32, u32)>(), digest(), weights, select(losses), kind, codec()).prop_map(
        |((round, samples_max, deadline_ms), weights_digest, weights, loss, kind, codec)| {
            Order::Train(Train {
                round,
                weights_digest,
                weights,
                loss,
                samples_max,
                kind,
                codec,
                deadline_ms,
            })
        },
    )
}

fn order() -> impl Strategy<Value = Message> {
    let refusals = vec![
        Refusal::Unknown,
        Refusal::NotDrawn,
        Refusal::Late,
        Refusal::Repeated,
        Refusal::Dimension,
        Refusal::NotFinite,
        Refusal::Norm,
        Refusal::Samples,
        Refusal::Malformed,
        Refusal::Rate,
    ];
    let loss = select(vec![LossKind::Mse, LossKind::Huber]);
    let measure = (any::<(u32, u64, u32, u32, u32)>(), loss).prop_map(
        |((round, seed, dimension, samples_max, deadline_ms), loss)| {
            Order::Measure(MeasureRequest { round, seed, dimension, loss, samples_max, deadline_ms })
        },
    );
    prop_oneof![
        train(),
        measure,
        (digest(), vec(any::<u8>(), 0..1000)).prop_map(|(graph, onnx)| Order::Graph { graph, onnx }),
        missing().prop_map(Order::Resend),
        (any::<u32>(), select(refusals)).prop_map(|(round, refusal)| Order::Refused { round, refusal }),
    ]
    .prop_map(Message::Order)
}

fn answer() -> impl Strategy<Value = Message> {
    let reasons = vec![
        Declined::NoData,
        Declined::ModelUnfit,
        Declined::TrainingFailed,
        Declined::TooMuchWork,
        Declined::TooFewSamples,
        Declined::PrivacySpent,
    ];
    let update = (any::<(u32, u32, u32)>(), any::<(f32, f32)>(), encoded()).prop_map(
        |((round, samples, online_samples), (loss, online_loss), vector)| {
            Answer::Update(Update { round, samples, loss, online_loss, online_samples, vector })
        },
    );
    let measured = (any::<(u32, u32)>(), vec(any::<f32>(), 0..300)).prop_map(|((round, samples), values)| {
        Answer::Measured(Measured {
            round,
            samples,
            skill: values.first().map(|skill| SkillPermille::of(f64::from(*skill))),
            vector: Bf16::encode(&values),
        })
    });
    prop_oneof![
        update,
        measured,
        (any::<u32>(), select(reasons.clone())).prop_map(|(round, reason)| Answer::Decline { round, reason }),
        (any::<u32>(), select(reasons)).prop_map(|(round, reason)| Answer::Unmeasured { round, reason }),
        digest().prop_map(Answer::NeedGraph),
        any::<u32>().prop_map(|round| Answer::NeedWeights { round }),
        missing().prop_map(Answer::Resend),
    ]
    .prop_map(Message::Answer)
}

fn account() -> impl Strategy<Value = Message> {
    let reasons = vec![Why::Exploring, Why::Drawn, Why::NotDrawn, Why::Absent, Why::Newcomer];
    (any::<(u32, u32, u32, Option<u32>)>(), any::<(f64, f64, f64)>(), select(reasons)).prop_map(
        |((round, staleness, drawn, last_drawn), (standing, standing_error, sampling_probability), why)| {
            Message::Account(Account {
                round,
                standing,
                standing_error,
                sampling_probability,
                staleness,
                last_drawn,
                drawn,
                why,
            })
        },
    )
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    prop_oneof![manifest(), status(), order(), answer(), account()]
}
