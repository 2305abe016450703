//! Flags of `evenhand-fleet paper`.

use clap::ValueEnum;

use crate::corruption::Corruption;
use crate::data::Dataset;
use crate::experiment::args::LabArgs;
use crate::experiment::contender::Contenders;

/// Flags of `evenhand-fleet paper`
#[derive(Debug, Clone, clap::Args)]
pub struct PaperArgs {
    /// Which table
    #[arg(value_enum)]
    pub table: TableName,
    /// Only these data sets, with commas [default: all of which the files are there]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "D,…")]
    pub dataset: Vec<Dataset>,
    /// Only these kinds of bad data, with commas, in the tables that compare them
    #[arg(long, value_enum, value_delimiter = ',', value_name = "C,…")]
    pub corruption: Vec<Corruption>,
    /// Only these strategies, with commas, in the tables that compare them; all is what it is for `experiment`. The table
    /// beta is always about evenhand
    #[arg(long, default_value = "all", value_name = "S|all|S,S,…")]
    pub strategy: Contenders,
    /// How tables are written
    #[arg(long, value_enum, default_value_t = Format::Text, conflicts_with = "json")]
    pub format: Format,
    /// What every command that runs trials takes.
    #[command(flatten)]
    pub lab: LabArgs,
}

/// A table of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableName {
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

impl TableName {
    /// The tables that a name stands for.
    pub fn each(self) -> Vec<Self> {
        match self {
            Self::All => Self::value_variants().iter().copied().filter(|&name| name != Self::All).collect(),
            one => vec![one],
        }
    }
}

/// How tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For terminals
    Text,
    /// For documents
    Markdown,
}
