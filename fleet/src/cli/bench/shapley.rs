//! `bench shapley`: the time of one round's contributions.

use std::io::Write;
use std::time::{Duration, Instant};

use evenhand_fairness::{ContributionConfig, Device, Estimator, Utility, contributions};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::Serialize;

use super::BenchError;
use crate::cli::by_name;

/// Flags of `bench shapley`
#[derive(Debug, clap::Args)]
pub(crate) struct ShapleyArgs {
    /// Number of nodes
    #[arg(long, default_value_t = 30)]
    pub nodes: usize,
    /// Length of an update
    #[arg(long, default_value_t = 104_242)]
    pub dim: usize,
    /// inner-product, projection, direction, cosine or leave-one-out
    #[arg(long, default_value = "cosine", value_parser = by_name::<Utility>)]
    pub utility: Utility,
    /// exact, stratified, stratified-independent or permutation
    #[arg(long, default_value = "stratified", value_parser = by_name::<Estimator>)]
    pub estimator: Estimator,
    /// Samples of the estimator
    #[arg(long, default_value_t = ContributionConfig::default().samples)]
    pub samples: usize,
    /// cpu, or gpu in a build with the feature of that name
    #[arg(long, default_value = "cpu", value_parser = by_name::<Device>)]
    pub device: Device,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct ShapleyTime {
    seconds_per_round: f64,
    gflops: f64,
    nodes: usize,
    dim: usize,
    device: &'static str,
    cores: usize,
    rounds: usize,
}

/// Measured for about this long, and for `ROUNDS_MIN` rounds at least.
const LONG_ENOUGH: Duration = Duration::from_secs(2);
const ROUNDS_MIN: usize = 3;

/// Measures rounds, and reports the median.
pub(crate) fn run(args: &ShapleyArgs, mut stdout: impl Write) -> Result<(), BenchError> {
    let config = ContributionConfig {
        utility: args.utility,
        estimator: args.estimator,
        samples: args.samples,
        device: args.device,
        ..ContributionConfig::default()
    };
    let device = args.device.driver_name().map_err(|error| BenchError::Refused(error.to_string()))?;
    let updates = updates(args.nodes, args.dim);
    let slices: Vec<&[f32]> = updates.iter().map(Vec::as_slice).collect();
    let weights = vec![1.0 / args.nodes as f64; args.nodes];
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut round = || {
        let start = Instant::now();
        contributions(&slices, &weights, &config, &mut rng)
            .map(|_| start.elapsed().as_secs_f64())
            .map_err(|error| BenchError::Refused(error.to_string()))
    };
    round()?;
    let (begin, mut seconds) = (Instant::now(), Vec::new());
    while seconds.len() < ROUNDS_MIN || begin.elapsed() < LONG_ENOUGH {
        seconds.push(round()?);
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    let figures = ShapleyTime {
        seconds_per_round: median,
        gflops: operations(args) / median / 1e9,
        nodes: args.nodes,
        dim: args.dim,
        device,
        cores: rayon::current_num_threads(),
        rounds: seconds.len(),
    };
    if args.json {
        serde_json::to_writer(&mut stdout, &figures).map_err(std::io::Error::from)?;
        writeln!(stdout)?;
    } else {
        let ShapleyTime { gflops, cores, rounds, .. } = figures;
        writeln!(
            stdout,
            "{} nodes × {} values: {:.3} ms a round (median of {rounds}), {gflops:.1} GFLOP/s on {device}, {cores} cores",
            args.nodes,
            args.dim,
            median * 1e3
        )?;
    }
    Ok(())
}

/// Multiplications and additions over the vectors: N(N+1)/2 scalar products for the Gram matrix; 2N of
/// them and of their like for the closed form. What coalitions cost is not counted, only timed.
fn operations(args: &ShapleyArgs) -> f64 {
    let (nodes, dim) = (args.nodes as f64, args.dim as f64);
    match args.utility {
        Utility::Cosine | Utility::LeaveOneOut => nodes * (nodes + 1.0) * dim,
        _ => 4.0 * nodes * dim,
    }
}

/// Updates that share a direction, as those of a fleet do.
fn updates(nodes: usize, dim: usize) -> Vec<Vec<f32>> {
    let update = |node: usize| {
        let mut rng = ChaCha8Rng::seed_from_u64(node as u64);
        (0..dim).map(|_| rng.random::<f32>() - 0.4).collect()
    };
    (0..nodes).into_par_iter().map(update).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{ShapleyArgs, run};
    use clap::Parser;

    #[derive(Parser)]
    struct ShapleyLine {
        #[command(flatten)]
        args: ShapleyArgs,
    }

    fn line(words: &[&str]) -> Result<ShapleyArgs, clap::Error> {
        let small = ["bench", "--nodes", "4", "--dim", "100"];
        ShapleyLine::try_parse_from(small.iter().chain(words)).map(|line| line.args)
    }

    #[test]
    fn figures_come_as_one_json_object() {
        for words in
            [&["--json"][..], &["--json", "--utility", "inner-product"], &["--json", "--estimator", "exact"]]
        {
            let mut out = Vec::new();
            run(&line(words).unwrap(), &mut out).unwrap();
            let figures: serde_json::Value = serde_json::from_slice(&out).unwrap();
            assert!(figures["seconds_per_round"].as_f64().unwrap() > 0.0);
            assert!(figures["gflops"].as_f64().unwrap() > 0.0);
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused_by_name() {
        let error = line(&["--utility", "fame"]).unwrap_err().to_string();
        assert!(error.contains("unknown variant `fame`, expected one of `inner-product`"), "{error}");
        let error = run(&line(&["--samples", "0"]).unwrap(), Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "samples = 0 must be at least 1");
    }
}
