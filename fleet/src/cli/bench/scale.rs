//! `bench scale`: growth of a round's time with the number of nodes.

use std::io::Write;
use std::time::Instant;

use evenhand_federation::Policy;
use serde::Serialize;

use super::print::PrintArgs;
use crate::cli::{FleetError, by_name};
use crate::sim::demo::{self, DemoConfig, DemoPlan, Transport};
use crate::sim::{self, Interrupt};

/// Flags of `bench scale`
#[derive(Debug, clap::Args)]
pub(crate) struct ScaleArgs {
    /// Numbers of nodes, one fleet each
    #[arg(long, value_delimiter = ',', default_value = "25,50,100,200", value_name = "N,…")]
    nodes: Vec<usize>,
    /// Rounds of each fleet; under the policy paper all of them explore: everybody trains, contributions are measured
    #[arg(long, default_value_t = 12, value_name = "T")]
    rounds: u32,
    /// Policy: continuous (everybody is measured, some train), or paper
    #[arg(long, value_name = "NAME", default_value = "continuous", value_parser = by_name::<Policy>)]
    policy: Policy,
    /// Transport of messages
    #[arg(long, value_enum, default_value_t = Transport::Memory)]
    transport: Transport,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    print: PrintArgs,
}

/// The figures of all fleets.
#[derive(Debug, Serialize)]
struct Scaling {
    transport: String,
    policy: Policy,
    rounds: u32,
    sizes: Vec<FleetSize>,
    /// Slope of log time over log nodes: 1 is linear growth.
    exponent: Option<f64>,
}

/// One fleet.
#[derive(Debug, Serialize)]
struct FleetSize {
    nodes: usize,
    /// Median over rounds, wall clock, without the first: it also ships the model.
    seconds_per_round: f64,
    milliseconds_per_round_and_node: f64,
    /// The part that the coordinator spent on contributions, stop rule and aggregation.
    seconds_fairness_per_round: f64,
}

/// Times all fleets, one after the other.
pub(crate) fn run(args: &ScaleArgs, stdout: impl Write) -> Result<(), FleetError> {
    let mut sizes = Vec::new();
    for &nodes in &args.nodes {
        sizes.push(measure(nodes, args)?);
    }
    let points: Vec<(f64, f64)> =
        sizes.iter().map(|size| ((size.nodes as f64).ln(), size.seconds_per_round.ln())).collect();
    let transport = format!("{:?}", args.transport).to_lowercase();
    let scaling =
        Scaling { transport, policy: args.policy, rounds: args.rounds, exponent: slope(&points), sizes };
    args.print.write(&scaling, table, stdout)
}

fn measure(nodes: usize, args: &ScaleArgs) -> Result<FleetSize, FleetError> {
    let plan = DemoPlan::new(&DemoConfig {
        nodes,
        rounds: args.rounds,
        policy: args.policy,
        seed: args.seed,
        transport: args.transport,
        // A window that no round reaches keeps the fleet exploring.
        window: Some(args.rounds as usize + nodes),
        ..Default::default()
    })?;
    let mut last = Instant::now();
    let (mut rounds, mut fairness) = (Vec::new(), Vec::new());
    let (fleet, _) = plan.fleet(demo::federation_id(&plan)?)?;
    demo::run_fleet(&plan, &fleet, &sim::runtime()?, &Interrupt::default(), &mut |_, seconds| {
        rounds.push(last.elapsed().as_secs_f64());
        fairness.push(seconds);
        last = Instant::now();
        Ok(())
    })?;
    let seconds_per_round = median(rounds.split_off(1.min(rounds.len() - 1)));
    Ok(FleetSize {
        nodes,
        seconds_per_round,
        milliseconds_per_round_and_node: 1e3 * seconds_per_round / nodes as f64,
        seconds_fairness_per_round: median(fairness),
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
    let sxx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    (sxx > 0.0).then(|| sxy / sxx)
}

fn table(scaling: &Scaling) -> String {
    let mut text = String::from(" nodes  seconds a round  ms a round and node  of which closing, s\n");
    for size in &scaling.sizes {
        text += &format!(
            "{:>6}  {:>15.4}  {:>19.3}  {:>20.4}\n",
            size.nodes,
            size.seconds_per_round,
            size.milliseconds_per_round_and_node,
            size.seconds_fairness_per_round
        );
    }
    if let Some(exponent) = scaling.exponent {
        text += &format!("\ntime grows like nodes^{exponent:.2} over {}\n", scaling.transport);
    }
    text
}
