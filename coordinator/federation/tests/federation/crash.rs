//! Killed at any point and restored, a coordinator goes on as if it had not been.

use evenhand_fairness::{SamplerKind, Utility};
use evenhand_federation::RoundEvidence;
use evenhand_federation::strategy::{Evenhand, Strategy};
use evenhand_protocol::message::Phase;
use evenhand_testkit::federation::crash::{
    CrashRun, assert_survives_kills, continuous_config, crash_config, failing_config, founded,
};
use evenhand_testkit::federation::scripted::UniformDraws;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn evenhand() -> Box<dyn Strategy> {
    Box::new(Evenhand)
}

#[test]
fn killed_between_any_two_effects_it_ends_as_the_undisturbed_run() {
    for sampler in [SamplerKind::WithReplacement, SamplerKind::WithoutReplacement, SamplerKind::Credit] {
        let calm = assert_survives_kills(&crash_config(sampler), evenhand);
        assert_eq!(calm.log.len(), 24);
        assert!(calm.log.values().any(|closed| closed.round.phase == Phase::Exploiting));
    }
}

#[test]
fn measured_in_every_round_it_survives_kills_alike() {
    let calm = assert_survives_kills(&continuous_config(), evenhand);
    assert_eq!(calm.log.len(), 30);
    assert!(calm.log.values().all(|closed| closed.round.phase == Phase::Running));
    let last = &calm.log[&30].round;
    assert!(last.nodes[0].standing > last.nodes[4].standing, "{:?}", last.nodes);
    assert!(last.nodes.iter().all(|node| node.contribution.is_some()));
}

/// Rounds that nobody answers, substitutes, silence and refusals: kills change nothing, and the records lead to the same end.
#[test]
fn where_rounds_and_draws_fail_it_survives_kills_alike() {
    let calm = assert_survives_kills(&failing_config(), evenhand);
    assert_eq!(calm.log.len(), 30);
    assert!(calm.federation.attempt() > 40, "{} attempts", calm.federation.attempt());
    let drawn = |closed: &RoundEvidence| closed.round.asked().count();
    assert!(calm.log.values().filter(|closed| drawn(closed) > 2).count() > 5, "substitutes were drawn");
    let credits: u32 = calm.federation.members().iter().map(|member| member.drawn()).sum();
    assert_eq!(credits as usize, calm.log.values().map(drawn).sum::<usize>(), "attempts are no draws");
}

#[test]
fn another_strategy_survives_kills_alike() {
    assert_survives_kills(&crash_config(SamplerKind::WithoutReplacement), || Box::new(UniformDraws));
}

/// Where contributions depend on the rounds before, so does the state.
#[test]
fn the_state_of_a_utility_survives_kills_and_is_replayed() {
    let mut config = crash_config(SamplerKind::Credit);
    config.contribution.utility = Utility::Direction;
    let calm = assert_survives_kills(&config, evenhand);
    assert!(calm.log.values().any(|closed| closed.round.phase == Phase::Exploiting));
    let mut federation = founded(&config, evenhand);
    for closed in calm.log.values() {
        let before = federation.measurement().clone();
        federation.replay(&closed.round, closed.received()).unwrap();
        assert_ne!(federation.measurement(), &before, "rounds that were not measured count as well");
    }
    config.contribution.utility = Utility::Cosine;
    let other = CrashRun::start(config, evenhand).finish(|_| false);
    assert!(!other.federation.measurement().is_stateful());
}

#[test]
fn killed_again_and_again_it_still_ends_as_the_undisturbed_run() {
    let config = crash_config(SamplerKind::Credit);
    let calm = CrashRun::start(config.clone(), evenhand).finish(|_| false);
    let mut kills = 0;
    for seed in 0..60 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let run = CrashRun::start(config.clone(), evenhand).finish(|_| rng.random_bool(0.03));
        assert_eq!(run.records(), calm.records(), "seed {seed}");
        assert_eq!(run.federation.weights().digest(), calm.federation.weights().digest());
        kills += run.kills;
    }
    assert!(kills >= 500, "{kills} kills");
}
