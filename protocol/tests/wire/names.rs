//! Names, topics, digests and exit codes.

use evenhand_protocol::exit::Exit;
use evenhand_protocol::identity::{Digest, FederationId, NAME_BYTES_MAX, NameError, NodeId};
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
    fn names_are_safe_as_topic_levels_and_files(name in ".{0,80}") {
        if let Ok(node) = NodeId::new(&name) {
            prop_assert!(!node.as_str().is_empty() && node.as_str().len() <= NAME_BYTES_MAX);
            prop_assert!(!node.as_str().contains(['/', '+', '#', '\0', '$', ' ']));
        }
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

#[test]
fn exit_codes_are_those_the_documentation_names() {
    let codes = [
        Exit::Ok,
        Exit::Usage,
        Exit::Data,
        Exit::Broker,
        Exit::Software,
        Exit::Busy,
        Exit::Config,
        Exit::Interrupted,
    ];
    assert_eq!(codes.map(u8::from), [0, 64, 65, 69, 70, 75, 78, 130]);
}
