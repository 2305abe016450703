//! The demo's flags, and what they mean together.

use std::path::PathBuf;

use clap::ValueEnum;
use evenhand_fairness::SamplerKind;
use evenhand_federation::strategy::StrategyKind;
use evenhand_protocol::codec::CodecKind;

use crate::cli::by_name;

/// Flags of `evenhand-fleet demo`
#[derive(Debug, Clone, clap::Args)]
pub struct DemoArgs {
    /// Meters in the fleet; their data quality ζ is spread from 0 (clean) to 0.9
    #[arg(long, default_value_t = 12, value_name = "N")]
    pub nodes: usize,
    /// Rounds, exploring and exploiting together
    #[arg(long, default_value_t = 60, value_name = "T")]
    pub rounds: u32,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How messages travel
    #[arg(long, value_enum, default_value_t = Transport::Mqtt)]
    pub transport: Transport,
    /// An MQTT broker to use instead of the embedded one, e.g. mqtt://127.0.0.1:1883
    #[arg(long, value_name = "URL")]
    pub broker: Option<String>,
    /// How updates travel
    #[arg(long, default_value = "f32", value_name = "f32|bf16|int8|top-k")]
    pub codec: CodecKind,
    /// Who receives the latest model
    #[arg(long, value_name = "NAME", default_value = "evenhand", value_parser = by_name::<StrategyKind>)]
    pub strategy: StrategyKind,
    /// How nodes are drawn by their probabilities
    #[arg(long, value_name = "NAME", default_value = "credit", value_parser = by_name::<SamplerKind>)]
    pub sampler: SamplerKind,
    /// β: how much standing counts; small is strict, large is equal [default: 0.7 / nodes]
    #[arg(long, value_name = "BETA")]
    pub temperature: Option<f64>,
    /// τ: rounds over which the standings must have settled [default: watched + 5]
    #[arg(long, value_name = "TAU")]
    pub window: Option<usize>,
    /// α: exploring ends when the stop rule's p-value reaches it
    #[arg(long, default_value_t = 0.7, value_name = "ALPHA")]
    pub strictness: f64,
    /// M: nodes whose contributions the stop rule watches [default: a third of the nodes, at most 10]
    #[arg(long, value_name = "M")]
    pub watched: Option<usize>,
    /// Draws a round [default: 40 % of the nodes]
    #[arg(long, value_name = "K")]
    pub k: Option<usize>,
    /// Run every node as a separate `evenhand-node` process; this program contains its code
    #[arg(long)]
    pub processes: bool,
    /// Print one JSON object on stdout instead of the table
    #[arg(long)]
    pub json: bool,
    /// Show no progress on stderr
    #[arg(long)]
    pub no_progress: bool,
    /// Where the HTML report goes
    #[arg(long, value_name = "PATH", default_value = "evenhand-report.html")]
    pub report: PathBuf,
}

/// How messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// Real MQTT: an embedded broker, or the one that --broker names
    Mqtt,
    /// In this process, in virtual time; the same seed gives the same JSON
    Memory,
}

/// What the flags are when none is given.
impl Default for DemoArgs {
    fn default() -> Self {
        #[derive(clap::Parser)]
        struct Flags {
            #[command(flatten)]
            demo: DemoArgs,
        }
        <Flags as clap::Parser>::parse_from(["demo"]).demo
    }
}
