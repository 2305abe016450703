//! Ends of a federation: finished, or failed with a remedy.

use evenhand_fairness::utility::DirectionEma;
use evenhand_fairness::{Measurement, Utility, UtilityState};
use evenhand_federation::strategy::Evenhand;
use evenhand_federation::{FailureCause, Federation, Input, Rules, SavedFederation};
use evenhand_protocol::message::{Answer, Phase, Refusal};
use evenhand_testkit::federation::scripted::{ScriptedFederation, node, small_config, update};

#[test]
fn it_is_finished_after_its_rounds() {
    let mut rules = small_config(1);
    rules.federation.rounds = 2;
    let mut world = ScriptedFederation::with(rules, 1, &["a"]);
    world.updates("a", 1, &[1.0]);
    world.updates("a", 1, &[1.0]);
    assert_eq!(world.phase(), Phase::Finished);
    assert_eq!(world.manifests.last().unwrap().1.phase, Phase::Finished);
    assert_eq!(world.federation().alarm(), None);
    world.answers("a", Answer::Update(update(2, 1, &[1.0])));
    assert_eq!(world.refusals, [(node("a"), Refusal::Repeated)]);
    assert_eq!(world.federation().weights().values(), [-1.0]);
}

#[test]
fn raising_the_rounds_reopens_a_finished_federation() {
    let mut rules = small_config(1);
    rules.federation.rounds = 2;
    let mut world = ScriptedFederation::with(rules.clone(), 1, &["a"]);
    world.updates("a", 1, &[1.0]);
    world.updates("a", 1, &[1.0]);
    assert_eq!(world.phase(), Phase::Finished);
    let onnx = world.federation().onnx().clone();
    let mut saved = SavedFederation::from_bytes(&world.federation().save().to_bytes()).unwrap();
    saved.amend(Rules::new(rules.clone()).unwrap());
    assert_eq!(Federation::restore(saved.clone(), onnx.clone()).unwrap().phase(), Phase::Finished);
    rules.federation.rounds = 0;
    saved.amend(Rules::new(rules).unwrap());
    let mut world =
        ScriptedFederation::driving(Federation::restore(saved, onnx).unwrap(), || Box::new(Evenhand));
    world.step(Input::LinkRestored);
    world.comes_online("a", 2);
    assert_eq!(world.federation().round(), 3);
    world.updates("a", 1, &[1.0]);
    assert_eq!(world.closed.last().unwrap().round.round, 3);
}

#[test]
fn a_model_that_diverges_fails_with_a_remedy_and_keeps_the_last_good_one() {
    let mut rules = small_config(1);
    rules.training.learning_rate = 1e300;
    let mut world = ScriptedFederation::with(rules, 1, &["a"]);
    world.updates("a", 1, &[1.0]);
    assert_eq!(world.phase(), Phase::Failed);
    let cause = world.federation().failure().unwrap();
    assert_eq!(cause, &FailureCause::Diverged { round: 1 });
    assert!(cause.to_string().contains("lower training.learning_rate"));
    assert_eq!(world.federation().weights().values(), [0.0]);
    assert_eq!(world.manifests.last().unwrap().1.phase, Phase::Failed);
}

/// The same federation with a state that no round can be measured with.
fn unmeasurable(federation: &Federation) -> Federation {
    let sound = federation.measurement();
    let state = UtilityState::Direction(DirectionEma::new(vec![f32::NAN]));
    let broken = Measurement::with_state(*sound.config(), state).unwrap();
    let [sound, broken] = [sound, &broken].map(|measurement| postcard::to_allocvec(measurement).unwrap());
    let mut bytes = federation.save().to_bytes();
    let start = bytes.windows(sound.len()).position(|part| part == sound).unwrap();
    bytes.splice(start..start + sound.len(), broken);
    Federation::restore(SavedFederation::from_bytes(&bytes).unwrap(), federation.onnx().clone()).unwrap()
}

/// Measuring is not worth a federation: the round counts, and says that and why nothing was measured.
#[test]
fn a_round_that_cannot_be_measured_is_a_round_without_contributions() {
    let mut rules = small_config(2);
    rules.contribution.utility = Utility::Direction;
    rules.exploring.rounds_max = 2;
    let founded = unmeasurable(ScriptedFederation::new(rules, 1).federation());
    let mut world = ScriptedFederation::driving(founded.clone(), || Box::new(Evenhand));
    world.comes_online("a", 1);
    world.comes_online("b", 1);
    for _ in 0..2 {
        world.updates("a", 1, &[1.0]);
        world.updates("b", 1, &[1.0]);
        let record = &world.last().round;
        let why = record.unmeasured.as_ref().unwrap();
        assert!(why.contains("direction is not finite"), "{why}");
        assert!(record.nodes.iter().all(|node| node.contribution.is_none()) && record.verdict.is_none());
    }
    assert_eq!(world.last().weights.values(), [-1.0], "the model moves on");
    assert_eq!(world.phase(), Phase::Exploiting, "and so does the federation");
    let mut replayed = founded;
    for closed in &world.closed {
        replayed.replay(&closed.round, closed.received()).unwrap();
    }
    assert_eq!(replayed.weights(), world.federation().weights());
}
