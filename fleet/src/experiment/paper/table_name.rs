//! The tables of the paper by name.

use clap::ValueEnum;

/// A table of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PaperTable {
    /// ρ by online loss and by staleness, for four kinds of bad data
    Fairness,
    /// Average, minimum and maximum online accuracy or MAPE, and its deviation over nodes
    Performance,
    /// Fairness against equality for several β
    Beta,
    /// Stopping iteration T_α when nodes are often away
    Unstable,
    /// Nodes that stop contributing: steady, RANDOM, POISSON
    Strategic,
    /// Nodes that see few of the classes
    Heterogeneity,
    /// Share of the noisier half that is found in the lower half of the standings, and how well these follow ζ
    Recall,
    /// Seconds in training and in closing rounds
    Time,
    /// All of them
    All,
}

impl PaperTable {
    /// The tables that a name stands for.
    pub fn each(self) -> Vec<Self> {
        match self {
            Self::All => Self::value_variants().iter().copied().filter(|&name| name != Self::All).collect(),
            one => vec![one],
        }
    }
}
