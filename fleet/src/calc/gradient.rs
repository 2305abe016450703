//! `calc gradient`.

use std::io::{BufRead, Write};
use std::path::PathBuf;

use super::CalcError;

/// What is differentiated.
#[derive(Debug, clap::Args)]
pub struct GradientArgs {
    /// The ONNX file
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// What is minimised: mse, cross-entropy, nll or huber
    #[arg(long, default_value = "mse")]
    pub loss: String,
}

/// Answers one question.
pub fn run(_args: &GradientArgs, _stdin: impl BufRead, _stdout: impl Write) -> Result<(), CalcError> {
    Err(CalcError::Refused("calc gradient is not part of this build".into()))
}
