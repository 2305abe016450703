//! Replay: every changed figure of a record is found, and named.

use evenhand_federation::{Command, Federation, NodeResponse, RoundEvidence};
use evenhand_protocol::identity::Digest;

use evenhand_testkit::federation::scripted::{ScriptedFederation, node, small_config};

/// Four exploring rounds with a newcomer, then four exploiting ones.
fn history() -> (Federation, Vec<RoundEvidence>) {
    let mut rules = small_config(3);
    rules.exploring.rounds_max = 4;
    let founded = ScriptedFederation::new(rules.clone(), 2).federation().clone();
    let mut world = ScriptedFederation::with(rules, 2, &["a", "b", "c"]);
    while world.closed.len() < 8 {
        let round = world.federation().round();
        if round == 2 {
            world.comes_online("d", 1);
        }
        if round == 6 {
            world.command(Command::Remove(node("c")));
        }
        let asked: Vec<String> = world.asked(round).into_iter().map(str::to_owned).collect();
        for (place, name) in asked.iter().enumerate() {
            if world.federation().round() == round {
                world.updates(name, 10 + place as u32, &[1.0 + place as f32, round as f32 / 8.0]);
            }
        }
        if world.federation().round() == round {
            world.wait();
        }
    }
    (founded, world.closed)
}

fn replay(founded: &Federation, history: &[RoundEvidence]) -> Result<(), String> {
    let mut federation = founded.clone();
    for closed in history {
        federation.replay(&closed.round, closed.received()).map_err(|difference| difference.to_string())?;
    }
    Ok(())
}

#[test]
fn a_true_history_is_recomputed_to_the_last_bit() {
    let (founded, history) = history();
    assert_eq!(replay(&founded, &history), Ok(()));
}

#[test]
fn each_untruth_is_found_in_its_round_and_named() {
    type Tamper = fn(&mut RoundEvidence);
    let (founded, history) = history();
    let cases: [(usize, Tamper, &str); 9] = [
        (
            1,
            |c| c.round.nodes[0].contribution = c.round.nodes[0].contribution.map(f64::next_up),
            "round 2: the contribution of a",
        ),
        (
            2,
            |c| c.round.nodes[1].standing = c.round.nodes[1].standing.next_up(),
            "round 3: the standing of b",
        ),
        (3, |c| c.round.verdict.as_mut().unwrap().p_value = Some(0.5), "round 4: the stop rule's verdict"),
        (5, |c| c.round.nodes[0].sampling_probability = 0.5, "round 6: the sampling probability of a"),
        (2, |c| c.round.weights_after = Digest::of(b"other"), "round 3: the model after"),
        (4, |c| c.round.loss = Some(0.0), "round 5: the loss"),
        (1, |c| c.updates.truncate(1), "round 2: the update of b"),
        (1, |c| c.round.nodes[2].response = NodeResponse::Missed, "round 2: the update of c"),
        (6, |c| c.round.nodes[1].drawn += 1, "round 7: the number of draws of b"),
    ];
    for (place, tamper, found) in cases {
        let mut tampered = history.clone();
        tamper(&mut tampered[place]);
        let difference = replay(&founded, &tampered).unwrap_err();
        assert!(difference.starts_with(found), "{difference} instead of {found}");
    }
    // A draw that fell on another node.
    let mut tampered = history.clone();
    let place = tampered.iter().position(|closed| closed.round.round == 8).unwrap();
    let nodes = &mut tampered[place].round.nodes;
    let drawn = nodes.iter().position(|node| node.was_asked()).unwrap();
    let other = (drawn + 1) % 2;
    let (a, b) = (nodes[drawn].why, nodes[other].why);
    (nodes[drawn].why, nodes[other].why) = (b, a);
    let difference = replay(&founded, &tampered).unwrap_err();
    assert!(difference.starts_with("round 8: the draw"), "{difference}");
    // A round left out.
    let mut tampered = history;
    tampered.remove(3);
    assert!(replay(&founded, &tampered).unwrap_err().starts_with("round 5: the round"));
}
