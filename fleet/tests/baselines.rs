//! Every registered strategy in the federation: killed, replayed, and under arbitrary inputs.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use evenhand_fairness::SamplerKind;
use evenhand_federation::FederationConfig;
use evenhand_fleet::baseline::{self, Cons, FedAvg, Fgfl, Gog, QFfl, STRATEGIES, Standalone};
use evenhand_testkit::federation::crash::{CrashRun, NODES, assert_survives_kills, crash_config};
use evenhand_testkit::federation::promises::{ModelPromise, ObservedStrategy, assert_promises};

const ROUNDS: u32 = 16;

fn config() -> FederationConfig {
    let mut config = crash_config(SamplerKind::WithoutReplacement);
    config.federation.rounds = ROUNDS;
    config
}

#[test]
fn every_strategy_survives_kills_and_can_be_replayed() {
    for strategy in STRATEGIES {
        assert_survives_kills(&config(), strategy.create);
    }
}

/// A node's reward is its own model where the strategy has one for each.
#[test]
fn a_node_s_own_model_goes_to_no_other_node() {
    for name in ["fgfl", "standalone"] {
        let strategy = baseline::strategy(name).unwrap();
        let run = CrashRun::start(config(), strategy.create).finish(|_| false);
        // In the last round every node was asked, with the model that the round before had left to it.
        let before = &run.log[&(ROUNDS - 1)];
        for (node, model) in run.nodes.iter().zip(&before.node_models) {
            assert_eq!(node.weights, model.values(), "{name}");
            assert_ne!(model.digest(), before.weights.digest(), "{name}");
        }
        let digests: BTreeSet<_> = before.node_models.iter().map(|model| model.digest()).collect();
        assert_eq!(digests.len(), NODES, "{name}");
    }
}

#[test]
fn the_promises_hold_under_every_baseline() {
    const BASELINES: &[ObservedStrategy] = &[
        ObservedStrategy {
            new: || Box::new(FedAvg),
            model: ModelPromise::Averaged,
            newcomers_start_low: false,
        },
        ObservedStrategy {
            new: || Box::new(QFfl::default()),
            model: ModelPromise::Unknown,
            newcomers_start_low: false,
        },
        ObservedStrategy {
            new: || Box::new(Fgfl::default()),
            model: ModelPromise::Unknown,
            newcomers_start_low: true,
        },
        ObservedStrategy {
            new: || Box::new(Gog::default()),
            model: ModelPromise::Averaged,
            newcomers_start_low: false,
        },
        ObservedStrategy {
            new: || Box::new(Standalone),
            model: ModelPromise::Unchanged,
            newcomers_start_low: false,
        },
        ObservedStrategy {
            new: || Box::new(Cons::default()),
            model: ModelPromise::Unknown,
            newcomers_start_low: false,
        },
    ];
    assert_promises(BASELINES, 900);
}
