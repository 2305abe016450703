//! The same fleet over real MQTT and in virtual time.
#![allow(clippy::unwrap_used)]

use evenhand_federation::Policy;
use evenhand_fleet::baseline::{self, STRATEGIES};
use evenhand_fleet::sim::Interrupt;
use evenhand_fleet::sim::demo::{self, DemoConfig, DemoPlan, Transport};
use evenhand_fleet::sim::progress::{ProgressStyle, RunProgress};
use evenhand_fleet::sim::{NodeFigures, RunEnd, RunFigures};

fn figures(config: DemoConfig) -> RunFigures {
    let plan = DemoPlan::new(&config).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let progress = RunProgress::new(std::io::sink(), ProgressStyle::Silent);
    demo::simulate(&plan, &runtime, &Interrupt::default(), progress).unwrap().figures()
}

/// All but the skill. A node's own forecasts depend on what comes first, the data of a round or its model; and a round of
/// the paper's policy does not wait for nodes that are not drawn, so that over MQTT they may read two rounds at once.
fn without_skill(figures: &RunFigures) -> Vec<NodeFigures> {
    figures.nodes.iter().map(|node| NodeFigures { skill: None, ..node.clone() }).collect()
}

fn small(transport: Transport) -> DemoConfig {
    let policy = Policy::Paper;
    DemoConfig { nodes: 5, rounds: 24, window: Some(6), policy, transport, ..Default::default() }
}

#[test]
fn mqtt_and_memory_agree_where_everybody_is_measured_in_every_round() {
    let config = |transport| DemoConfig { policy: Policy::Continuous, ..small(transport) };
    let memory = figures(config(Transport::Memory));
    let mqtt = figures(config(Transport::Mqtt));
    assert_eq!(without_skill(&memory), without_skill(&mqtt));
    for (here, there) in memory.nodes.iter().zip(&mqtt.nodes) {
        let (here, there) = (here.skill.unwrap(), there.skill.unwrap());
        assert!((here - there).abs() < 0.02, "skill {here} and {there}");
    }
}

#[test]
fn mqtt_and_memory_agree_on_every_node() {
    let memory = figures(small(Transport::Memory));
    let mqtt = figures(small(Transport::Mqtt));
    assert!(memory.t_alpha.is_some_and(|t| t < 24), "both phases are part of the comparison");
    assert_eq!(without_skill(&memory), without_skill(&mqtt));
    assert_eq!((memory.t_alpha, memory.rounds, memory.ended), (mqtt.t_alpha, 24, RunEnd::Complete));
    let alike = |a: u64, b: u64| (a as f64 / b as f64 - 1.0).abs() < 0.05;
    assert!(alike(memory.bytes_up, mqtt.bytes_up), "{} {}", memory.bytes_up, mqtt.bytes_up);
    assert!(alike(memory.bytes_down, mqtt.bytes_down), "{} {}", memory.bytes_down, mqtt.bytes_down);
}

/// The models that a strategy issues are the same over a real broker.
#[test]
fn mqtt_and_memory_agree_under_every_strategy() {
    for strategy in STRATEGIES {
        let config = |transport| DemoConfig { strategy, rounds: 12, ..small(transport) };
        assert_eq!(
            without_skill(&figures(config(Transport::Memory))),
            without_skill(&figures(config(Transport::Mqtt))),
            "{}",
            strategy.name
        );
    }
}

#[test]
fn codecs_change_what_travels_and_hardly_what_is_learned() {
    let with =
        |codec: &str| figures(DemoConfig { codec: codec.parse().unwrap(), ..small(Transport::Memory) });
    let exact = with("f32");
    let loss = |figures: &RunFigures| figures.online_loss.unwrap().mean;
    // Codecs decide with the last digits when exploring ends, and thus how many updates there are.
    let bytes_an_update = |figures: &RunFigures| {
        figures.bytes_up as f64 / figures.nodes.iter().map(|node| f64::from(node.drawn)).sum::<f64>()
    };
    for (codec, share, tolerance) in [("bf16", 0.52, 0.01), ("int8", 0.30, 0.05)] {
        let lossy = with(codec);
        let bytes = bytes_an_update(&lossy) / bytes_an_update(&exact);
        assert!(bytes < share, "{codec}: {bytes} of the bytes");
        let change = (loss(&lossy) / loss(&exact) - 1.0).abs();
        assert!(change < tolerance, "{codec}: the mean online loss changes by {change}");
    }
    let sparse = with("top-k");
    let bytes = bytes_an_update(&sparse) / bytes_an_update(&exact);
    assert!(bytes < 0.1, "{bytes} of the bytes");
}

#[test]
fn without_incentives_all_nodes_have_equal_probabilities() {
    let strategy = baseline::strategy("fedavg").unwrap();
    let figures = figures(DemoConfig { strategy, rounds: 40, ..small(Transport::Memory) });
    assert!(figures.nodes.iter().all(|node| (node.sampling_probability - 0.2).abs() < 1e-12));
}
