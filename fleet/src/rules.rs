//! The rules that every simulated federation takes from its settings.

use evenhand_federation::{
    self as federation, AdmissionConfig, ExploitingConfig, ExploringConfig, GeneralConfig,
};
use evenhand_protocol::identity::FederationId;

use crate::outcome::Settings;

/// Rules that hold what `settings` tell in numbers, so that a run is what its report says; the rest is as by default, but for
/// what the published method does not have: limits beside the other nodes, and a test that does not wait for silent ones.
pub(crate) fn as_reported(
    settings: &Settings,
    name: FederationId,
    nodes: usize,
) -> federation::FederationConfig {
    federation::FederationConfig {
        federation: GeneralConfig {
            name,
            seed: settings.seed,
            rounds: settings.rounds,
            nodes_min: nodes as u32,
            nodes_max: nodes as u32,
            ..Default::default()
        },
        exploring: ExploringConfig {
            window: settings.window as u32,
            watched: settings.watched as u32,
            strictness: settings.strictness,
            skip_constant: false,
            ..Default::default()
        },
        exploiting: ExploitingConfig {
            k: settings.k as u32,
            temperature: settings.temperature,
            ..Default::default()
        },
        admission: AdmissionConfig { norm_ratio_max: 0.0, samples_ratio_max: 0.0, ..Default::default() },
        ..Default::default()
    }
}
