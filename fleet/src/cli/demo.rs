//! `evenhand-fleet demo`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use evenhand_fairness::SamplerKind;
use evenhand_federation::Policy;
use evenhand_program::exit::Exit;
use evenhand_protocol::codec::CodecKind;

use super::report_file::ReportFile;
use super::{FleetError, by_name, run_table, signal};
use crate::baseline::{self, RegisteredStrategy, STRATEGIES};
use crate::sim::demo::{self, DemoConfig, DemoPlan, Transport};
use crate::sim::progress::{ProgressStyle, RunProgress};
use crate::sim::{self, Interrupt, RunEnd};

/// Flags of `evenhand-fleet demo`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DemoArgs {
    /// Meters in the fleet; their data quality ζ is spread from 0 (clean) to 0.9
    #[arg(long, default_value_t = 12, value_name = "N")]
    pub nodes: usize,
    /// Rounds
    #[arg(long, default_value_t = 60, value_name = "T")]
    pub rounds: u32,
    /// Policy: continuous (measured in every round), or paper (explore, then fixed standings)
    #[arg(long, value_name = "NAME", default_value = "continuous", value_parser = by_name::<Policy>)]
    pub policy: Policy,
    /// Longest mean wait that is promised, in rounds; 0 promises three times that of equal odds
    #[arg(long, default_value_t = 0.0, value_name = "ROUNDS")]
    pub worst_wait: f64,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Transport of messages
    #[arg(long, value_enum, default_value_t = Transport::Mqtt)]
    pub transport: Transport,
    /// An MQTT broker to use instead of the embedded one, e.g. mqtt://127.0.0.1:1883
    #[arg(long, value_name = "URL")]
    pub broker: Option<String>,
    /// Codec of updates
    #[arg(long, default_value = "f32", value_name = "f32|bf16|int8|top-k")]
    pub codec: CodecKind,
    /// Strategy that decides which nodes receive the latest model
    #[arg(long, value_name = "NAME", default_value = "evenhand", value_parser = strategies())]
    pub strategy: RegisteredStrategy,
    /// Sampler that draws nodes by their probabilities
    #[arg(long, value_name = "NAME", default_value = "credit", value_parser = by_name::<SamplerKind>)]
    pub sampler: SamplerKind,
    /// β under the policy paper: small is strict, large is equal [default: 0.7 / nodes]
    #[arg(long, value_name = "BETA")]
    pub temperature: Option<f64>,
    /// τ: rounds over which the standings must have settled [default: tested nodes + 5]
    #[arg(long, value_name = "TAU")]
    pub window: Option<usize>,
    /// α: exploring ends when the stop rule's p-value reaches it
    #[arg(long, default_value_t = 0.7, value_name = "ALPHA")]
    pub alpha: f64,
    /// M: nodes whose contributions the stop rule tests [default: a third of the nodes, at most 10]
    #[arg(long, value_name = "M")]
    pub tested_nodes: Option<usize>,
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
    /// Path of the HTML report
    #[arg(long, value_name = "PATH", default_value = "evenhand-report.html")]
    pub report: PathBuf,
}

impl DemoArgs {
    fn config(&self) -> DemoConfig {
        DemoConfig {
            nodes: self.nodes,
            rounds: self.rounds,
            policy: self.policy,
            worst_wait: self.worst_wait,
            seed: self.seed,
            transport: self.transport,
            broker: self.broker.clone(),
            codec: self.codec,
            strategy: self.strategy,
            sampler: self.sampler,
            temperature: self.temperature,
            window: self.window,
            alpha: self.alpha,
            tested_nodes: self.tested_nodes,
            k: self.k,
            processes: self.processes,
        }
    }
}

/// A parser of strategies by name.
fn strategies() -> impl TypedValueParser<Value = RegisteredStrategy> {
    PossibleValuesParser::new(STRATEGIES.map(|strategy| strategy.name))
        .try_map(|name| baseline::strategy(&name).ok_or("no such strategy"))
}

/// Runs the demo and prints its figures.
pub(super) fn run(args: &DemoArgs) -> Result<Exit, FleetError> {
    let plan = DemoPlan::new(&args.config())?;
    let file = ReportFile::create(&args.report)?;
    let runtime = sim::runtime()?;
    let interrupt = Interrupt::default();
    runtime.spawn(signal::watch(interrupt.clone()));
    let progress = RunProgress::new(io::stderr(), ProgressStyle::of_stderr(args.no_progress));
    let run = demo::simulate(&plan, &runtime, &interrupt, progress)?;

    let figures = run.figures();
    file.finish(&run.report_html())?;
    let mut text = if args.json {
        serde_json::to_string(&figures).map_err(|error| FleetError::Output(error.into()))?
    } else {
        format!("{}report    {}", run_table::text(&run, &figures), args.report.display())
    };
    text.push('\n');
    io::stdout().lock().write_all(text.as_bytes()).map_err(FleetError::Output)?;
    if args.json && !args.no_progress {
        eprintln!("report: {}", args.report.display());
    }
    Ok(match run.ended {
        RunEnd::Complete => Exit::Ok,
        RunEnd::Interrupted => Exit::Interrupted,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct DemoLine {
        #[command(flatten)]
        demo: DemoArgs,
    }

    #[test]
    fn defaults_of_the_flags_are_those_of_the_configuration() {
        assert_eq!(DemoLine::parse_from(["demo"]).demo.config(), DemoConfig::default());
    }
}
