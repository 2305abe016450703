//! An open round after a lost link or a restart, and what is no saved federation.

use evenhand_federation::{Effect, Federation, Input, OrderPayload, RestoreError, SavedFederation, Tick};
use evenhand_protocol::message::Answer;

use evenhand_testkit::federation::scripted::{DEADLINE_MS, ScriptedFederation, node, small_config, update};

#[test]
fn after_a_lost_link_the_round_is_asked_for_again_with_the_full_deadline() {
    let mut world = ScriptedFederation::with(small_config(2), 1, &["a", "b"]);
    world.updates("a", 10, &[1.0]);
    world.now = Tick(u64::from(DEADLINE_MS) - 1);
    let effects = world.step(Input::LinkRestored);
    assert!(matches!(&effects[0], Effect::Manifest { to: None, .. }));
    let [_, Effect::Publish { node, payload: OrderPayload::Train(task) }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((node.as_str(), task.round()), ("b", 1), "a's update is in");
    assert_eq!(world.federation().alarm(), Some(Tick(2 * u64::from(DEADLINE_MS) - 1)));
}

#[test]
fn a_restored_coordinator_asks_the_same_nodes_for_the_same_round() {
    let mut rules = small_config(3);
    rules.exploring.rounds_max = 1;
    let mut world = ScriptedFederation::with(rules, 1, &["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        world.updates(name, 10, &[1.0]);
    }
    let drawn = world.asked(2)[0].to_owned();
    let mut undisturbed = world.federation().clone();
    world.crash();
    assert_eq!(world.federation().alarm(), None, "nobody is late before it was asked");
    world.now = Tick(5);
    world.step(Input::Tick);
    world.step(Input::LinkRestored);
    assert_eq!(world.asked(2), [drawn.clone(), drawn.clone()]);
    world.updates(&drawn, 10, &[1.0]);
    let input = Input::Answer { node: node(&drawn), answer: Answer::Update(update(2, 10, &[1.0])) };
    undisturbed.step(Tick(5), input);
    assert_eq!(world.federation().save().to_bytes().len(), undisturbed.save().to_bytes().len());
    assert_eq!(world.federation().members(), undisturbed.members());
    assert_eq!(world.federation().weights(), undisturbed.weights());
}

#[test]
fn saved_bytes_that_were_tampered_with_are_refused_without_panic() {
    let mut world = ScriptedFederation::with(small_config(2), 1, &["a", "b"]);
    world.updates("a", 10, &[1.0]);
    let bytes = world.federation().save().to_bytes();
    assert!(matches!(SavedFederation::from_bytes(&bytes[..1]), Err(RestoreError::Format(0))));
    let mut newer = bytes.clone();
    newer[0] = 99;
    assert!(matches!(SavedFederation::from_bytes(&newer), Err(RestoreError::Format(99))));
    let other = Federation::restore(SavedFederation::from_bytes(&bytes).unwrap(), b"other"[..].into());
    assert!(matches!(other, Err(RestoreError::Onnx)));
    for position in 2..bytes.len() {
        for flip in [1u8, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[position] ^= flip;
            if let Ok(saved) = SavedFederation::from_bytes(&damaged)
                && let Ok(mut federation) = Federation::restore(saved, b"onnx"[..].into())
            {
                federation.step(Tick(1), Input::LinkRestored);
                let answer = Answer::Update(update(1, 10, &[1.0]));
                federation.step(Tick(1), Input::Answer { node: node("b"), answer });
                federation.step(Tick(9_000), Input::Tick);
            }
        }
        assert!(SavedFederation::from_bytes(&bytes[..position]).is_err(), "cut off at {position}");
    }
}
