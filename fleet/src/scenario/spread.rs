//! The spread of quality over nodes.

/// The share of designated nodes, as in the paper's running example.
const DESIGNATED: f64 = 0.3;

/// The nodes whose data are worse.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum QualitySpread {
    /// Each node's are a little worse than those of the one before
    #[default]
    Ladder,
    /// Three tenths of the nodes have bad data, all of them equally; the others have good ones
    Designated,
}

/// The number of designated ones of so many nodes: the last ones.
pub fn designated(nodes: usize) -> usize {
    (DESIGNATED * nodes as f64).round() as usize
}
