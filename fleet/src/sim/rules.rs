//! The configuration that all simulated federations begin with.

use evenhand_federation::{
    AdmissionConfig, ExploringConfig, FederationConfig, GeneralConfig, TrainingConfig,
};

/// The defaults for a federation of `nodes`, all of which take part from the first round on; without what the published
/// method does not have: local training, limits relative to the other nodes, and a test that leaves silent nodes out.
pub(crate) fn simulated_federation(nodes: usize) -> FederationConfig {
    let nodes = nodes as u32;
    FederationConfig {
        federation: GeneralConfig { nodes_min: nodes, nodes_max: nodes, ..Default::default() },
        training: TrainingConfig::plain_gradient(),
        exploring: ExploringConfig { skip_uninformative: false, ..Default::default() },
        admission: AdmissionConfig { norm_ratio_max: 0.0, samples_ratio_max: 0.0, ..Default::default() },
        ..Default::default()
    }
}
