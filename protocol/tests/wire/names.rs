//! Names, topics, words, digests and exit codes.

use evenhand_protocol::identity::{Digest, FederationId, NAME_BYTES_MAX, NameError, NodeId};
use evenhand_protocol::message::{Declined, Phase, Refusal, Why};
use evenhand_protocol::topic::{self, Channel};
use proptest::prelude::*;

use crate::seeded;

const CHANNELS: [Channel; 4] = [Channel::Status, Channel::Task, Channel::Update, Channel::Account];

proptest! {
    #![proptest_config(seeded(256))]

    #[test]
    fn topics_name_their_node(federation in "[a-zA-Z0-9_.-]{1,64}", node in "[a-zA-Z0-9_.-]{1,64}") {
        let (federation, node) = (FederationId::new(&federation).unwrap(), NodeId::new(&node).unwrap());
        for channel in CHANNELS {
            let topic = topic::node(&federation, &node, channel);
            prop_assert_eq!(topic::parse_node(&federation, &topic), Some((node.clone(), channel)));
            prop_assert_eq!(topic::every_node(&federation, channel), topic.replace(&format!("/node/{node}/"), "/node/+/"));
        }
    }

    #[test]
    fn any_topic_is_parsed_without_panic(topic in ".{0,100}") {
        topic::parse_node(&FederationId::new("f").unwrap(), &topic);
    }

    #[test]
    fn names_are_letters_digits_and_three_signs(
        name in prop_oneof!["[A-Za-z0-9._-]{0,80}", "[A-Za-z0-9._/+#$ -]{0,8}", ".{0,80}"],
    ) {
        let safe = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let expected = match name.chars().find(|c| !safe(*c)) {
            _ if !(1..=NAME_BYTES_MAX).contains(&name.len()) => Err(NameError::Length(name.len())),
            Some(c) => Err(NameError::Character(c)),
            None => Ok(name.clone()),
        };
        prop_assert_eq!(NodeId::new(&name).map(String::from), expected.clone());
        prop_assert_eq!(FederationId::new(&name).map(String::from), expected);
    }
}

#[test]
fn foreign_topics_name_no_node() {
    let federation = FederationId::new("f").unwrap();
    for foreign in [
        "",
        "evenhand/v1/f/manifest",
        "evenhand/v1/g/node/n/task",
        "evenhand/v2/f/node/n/task",
        "evenhand/v1/f/node//task",
        "evenhand/v1/f/node/n/secrets",
        "evenhand/v1/f/node/n/task/more",
        "evenhand/v1/f/node/a b/task",
    ] {
        assert_eq!(topic::parse_node(&federation, foreign), None, "{foreign}");
    }
}

#[test]
fn bad_names_say_what_is_wrong() {
    assert_eq!(NodeId::new(""), Err(NameError::Length(0)));
    assert_eq!(NodeId::new(&"x".repeat(65)), Err(NameError::Length(65)));
    assert_eq!(NodeId::new("kitchen/meter"), Err(NameError::Character('/')));
}

#[test]
fn weights_are_digested_as_little_endian_bytes() {
    for dim in [0, 1, 1023, 1024, 1025, 5000] {
        let weights: Vec<f32> = (0..dim).map(|position| position as f32 * 0.5).collect();
        let bytes: Vec<u8> = weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
        assert_eq!(Digest::of_weights(&weights), Digest::of(&bytes));
    }
}

/// Scripts and dashboards of others compare these words.
#[test]
fn words_stay_as_they_were_published() {
    use Phase::{Enrolling, Exploiting, Exploring, Failed, Finished, Paused};
    let phases = [Enrolling, Exploring, Exploiting, Paused, Finished, Failed].map(Phase::name);
    assert_eq!(phases, ["enrolling", "exploring", "exploiting", "paused", "finished", "failed"]);
    let refusals = [
        (Refusal::Unknown, "unknown"),
        (Refusal::NotDrawn, "not-drawn"),
        (Refusal::Late, "late"),
        (Refusal::Repeated, "repeated"),
        (Refusal::Dimension, "dimension"),
        (Refusal::NotFinite, "not-finite"),
        (Refusal::Norm, "norm"),
        (Refusal::Samples, "samples"),
        (Refusal::Malformed, "malformed"),
        (Refusal::Rate, "rate"),
    ];
    assert!(refusals.iter().all(|(refusal, word)| refusal.name() == *word));
    let declined = [
        Declined::NoData,
        Declined::ModelUnfit,
        Declined::TrainingFailed,
        Declined::TooMuchWork,
        Declined::TooFewSamples,
        Declined::PrivacySpent,
    ];
    let declined = declined.map(Declined::name);
    assert_eq!(
        declined,
        ["no-data", "model-unfit", "training-failed", "too-much-work", "too-few-samples", "privacy-spent"]
    );
    let why = [Why::Exploring, Why::Drawn, Why::NotDrawn, Why::Absent, Why::Newcomer].map(Why::name);
    assert_eq!(why, ["exploring", "drawn", "not-drawn", "absent", "newcomer"]);
}
