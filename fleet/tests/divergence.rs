//! A federation cannot get stuck with a model that got lost.
#![allow(clippy::unwrap_used)]

use evenhand_federation::{
    FederationConfig, InitialModel, Intervention, RoundEvidence, Rules, TrainingConfig,
};
use evenhand_fleet::baseline;
use evenhand_fleet::sim::fleet::{HouseholdFleet, HouseholdNode};
use evenhand_fleet::sim::{Interrupt, RunEnd, memory};
use evenhand_models::{LoadOptions, Model, shipped};
use evenhand_node::source::household::HouseholdConfig;
use evenhand_node::window::{SampleFormat, SeriesConfig};
use evenhand_protocol::identity::{Digest, NodeId};

const ROUNDS: u32 = 3000;

/// Four households with the plain gradient, of which one a round moves the model alone: the longest steps there are.
fn four_households() -> HouseholdFleet {
    let mut config = FederationConfig { training: TrainingConfig::plain_gradient(), ..Default::default() };
    config.federation.nodes_min = 4;
    config.federation.rounds = ROUNDS;
    config.exploring.tested_nodes = 2;
    config.exploiting.k = 1;
    let model = Model::load(shipped::ELECTRICITY_RNN, &LoadOptions::default()).unwrap();
    let household = |seed: u64| HouseholdNode {
        id: NodeId::new(&format!("home-{seed}")).unwrap(),
        household: HouseholdConfig { seed, ..Default::default() },
    };
    HouseholdFleet {
        rules: Rules::new(config).unwrap(),
        strategy: baseline::strategy("evenhand").unwrap(),
        initial_model: InitialModel {
            graph: Digest(model.digest()),
            onnx: shipped::ELECTRICITY_RNN.into(),
            weights: model.initial_weights().into(),
        },
        nodes: (1..=4).map(household).collect(),
        series: SeriesConfig { samples: SampleFormat::Lags, ..Default::default() },
        readings_a_round: 8,
        forecasts: false,
    }
}

#[test]
fn four_households_learn_for_three_thousand_rounds() {
    let mut losses = Vec::new();
    let mut restored = 0;
    let mut record = |closed: &RoundEvidence, _: f64| {
        losses.extend(closed.round.loss);
        restored += u32::from(matches!(closed.round.intervention, Some(Intervention::Restored { .. })));
        Ok(())
    };
    let result = memory::run(&four_households(), &Interrupt::default(), &mut record).unwrap();
    assert_eq!(result.ended, RunEnd::Complete);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (first, last) = (mean(&losses[..100]), mean(&losses[losses.len() - 1000..]));
    println!("loss {first} at first, {last} in the end; {restored} models restored");
    assert!(last < 1.5 * first, "loss {first} at first, {last} in the end");
}
