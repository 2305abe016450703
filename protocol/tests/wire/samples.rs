//! One message of every kind, with lengths that are used in practice: the start of every test on bytes.

use evenhand_protocol::chunk::TransferId;
use evenhand_protocol::codec::{Bf16, CodecKind, ErrorFeedback, encode};
use evenhand_protocol::identity::{Digest, FederationId};
use evenhand_protocol::message::{
    Account, Answer, Birth, Declined, Life, LossKind, Manifest, MeasureRequest, Measured, Message,
    MissingChunks, Order, Phase, Refusal, SkillPermille, Status, Train, Update, UpdateKind, Why,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Parameters of the default model.
pub(crate) const DIM: usize = 1921;

pub(crate) const CODECS: [CodecKind; 4] =
    [CodecKind::F32, CodecKind::Bf16, CodecKind::Int8, CodecKind::TopK { per_mille: 10 }];

/// A vector whose entries differ in sign and size, as those of a gradient do.
pub(crate) fn vector(dim: usize) -> Vec<f32> {
    (0..dim).map(|position| (position as f32 * 0.37).sin() * (1.0 + (position % 13) as f32)).collect()
}

pub(crate) fn update(codec: CodecKind, dim: usize) -> Message {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    Message::Answer(Answer::Update(Update {
        round: 60,
        samples: 96,
        loss: 0.25,
        online_loss: 0.5,
        online_samples: 96,
        vector: encode(codec, &vector(dim), &mut ErrorFeedback::default(), &mut rng),
    }))
}

pub(crate) fn messages() -> Vec<(&'static str, Message)> {
    let digest = Digest::of(b"electricity-rnn");
    let missing = MissingChunks { transfer: TransferId::of(b"message"), chunks: vec![0, 1, 17, 300] };
    let born = Life::Born(Birth {
        graph: Some(digest),
        weights: None,
        token: Some("token".to_owned()),
        software: "evenhand-node 0.1.0".to_owned(),
    });
    let train = |weights| {
        Message::Order(Order::Train(Train {
            round: 7,
            weights_digest: digest,
            weights,
            loss: LossKind::Mse,
            samples_max: 96,
            kind: UpdateKind::Epochs { epochs: 2, learning_rate: 0.1, momentum: 0.9 },
            codec: CodecKind::TopK { per_mille: 10 },
            deadline_ms: 30_000,
        }))
    };
    vec![
        (
            "manifest",
            Message::Manifest(Manifest {
                federation: FederationId::new("households").expect("a valid name"),
                graph: digest,
                parameters: DIM as u32,
                phase: Phase::Exploring,
                round: 12,
            }),
        ),
        ("born", Message::Status(Status { session: 3, life: born })),
        ("dead", Message::Status(Status { session: 3, life: Life::Dead })),
        ("train", train(Some(vector(40)))),
        ("train-known", train(None)),
        (
            "measure",
            Message::Order(Order::Measure(MeasureRequest {
                round: 7,
                seed: 0xEDA7,
                dimension: 4096,
                loss: LossKind::Mse,
                samples_max: 96,
                deadline_ms: 30_000,
            })),
        ),
        ("graph", Message::Order(Order::Graph { graph: digest, onnx: vec![8; 100] })),
        ("order-resend", Message::Order(Order::Resend(missing.clone()))),
        ("refused", Message::Order(Order::Refused { round: 7, refusal: Refusal::NotFinite })),
        ("update-f32", update(CODECS[0], 40)),
        ("update-bf16", update(CODECS[1], 40)),
        ("update-int8", update(CODECS[2], 300)),
        ("update-top-k", update(CODECS[3], 300)),
        (
            "measured",
            Message::Answer(Answer::Measured(Measured {
                round: 7,
                samples: 96,
                skill: Some(SkillPermille::of(0.125)),
                vector: Bf16::encode(&vector(40)),
            })),
        ),
        ("unmeasured", Message::Answer(Answer::Unmeasured { round: 7, reason: Declined::NoData })),
        ("decline", Message::Answer(Answer::Decline { round: 7, reason: Declined::NoData })),
        ("need-graph", Message::Answer(Answer::NeedGraph(digest))),
        ("need-weights", Message::Answer(Answer::NeedWeights { round: 7 })),
        ("answer-resend", Message::Answer(Answer::Resend(missing))),
        (
            "account",
            Message::Account(Account {
                round: 7,
                standing: 0.125,
                standing_error: 0.01,
                sampling_probability: 0.25,
                staleness: 2,
                last_drawn: Some(5),
                drawn: 4,
                why: Why::NotDrawn,
            }),
        ),
    ]
}
