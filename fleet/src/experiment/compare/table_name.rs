//! The comparisons by name.

use clap::ValueEnum;

/// A comparison of strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ComparisonTable {
    /// ρ by online loss and by staleness, for four kinds of bad data
    Fairness,
    /// Average, minimum and maximum online accuracy or MAPE, and its deviation over nodes
    Performance,
    /// Fairness against equality for several β
    Sharpness,
    /// Stopping iteration T_α when nodes are often away
    Away,
    /// Nodes that stop contributing: steady, RANDOM, POISSON
    Withholding,
    /// Nodes that see few of the classes
    ClassLadder,
    /// Share of the noisier half that is found in the lower half of the standings, and how well these follow ζ
    Standings,
    /// Seconds in training and in closing rounds
    Cost,
    /// All of them
    All,
}

impl ComparisonTable {
    /// The tables that a name stands for.
    pub fn each(self) -> Vec<Self> {
        match self {
            Self::All => Self::value_variants().iter().copied().filter(|&name| name != Self::All).collect(),
            one => vec![one],
        }
    }
}
