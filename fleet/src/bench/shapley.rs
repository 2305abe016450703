//! `bench shapley`.

use std::io::Write;

use super::BenchError;

/// The size of the game.
#[derive(Debug, clap::Args)]
pub struct ShapleyArgs {
    /// Number of nodes
    #[arg(long, default_value_t = 30)]
    pub nodes: usize,
    /// Length of an update
    #[arg(long, default_value_t = 104_242)]
    pub dim: usize,
    /// inner-product or cosine
    #[arg(long, default_value = "cosine")]
    pub utility: String,
    /// exact, stratified or permutation
    #[arg(long, default_value = "stratified")]
    pub estimator: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Measures one round.
pub fn run(_args: &ShapleyArgs, _stdout: impl Write) -> Result<(), BenchError> {
    Err(BenchError::Refused("bench shapley is not part of this build".into()))
}
