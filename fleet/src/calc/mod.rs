//! Calculators: JSON on stdin, JSON on stdout, so that anyone can check a number.

pub mod gradient;
pub mod incentive;
pub mod shapley;
pub mod stop;

use std::io::{BufRead, Write};

use evenhand_protocol::exit::Exit;

/// Which number to check.
#[derive(Debug, clap::Subcommand)]
pub enum Calc {
    /// Contributions of one round: updates and weights in, Shapley values and their standard errors out
    Shapley,
    /// The stop rule on a history of contributions
    Stop,
    /// Sampling and selection probabilities, staleness, and the temperature for a wish
    Incentive,
    /// Loss and gradient of an ONNX model on one batch
    Gradient(gradient::GradientArgs),
}

impl Calc {
    /// Answers the question on `stdin` on `stdout`.
    pub fn run(&self, stdin: impl BufRead, stdout: impl Write) -> Result<(), CalcError> {
        match self {
            Calc::Shapley => shapley::run(stdin, stdout),
            Calc::Stop => stop::run(stdin, stdout),
            Calc::Incentive => incentive::run(stdin, stdout),
            Calc::Gradient(args) => gradient::run(args, stdin, stdout),
        }
    }
}

/// Why a calculator could not answer.
#[derive(Debug, thiserror::Error)]
pub enum CalcError {
    /// The question is not the JSON the calculator expects.
    #[error("the question on stdin is not understood: {0}; see `evenhand-fleet calc --help`")]
    Question(#[from] serde_json::Error),
    /// Reading the question or writing the answer failed.
    #[error("cannot read the question or write the answer: {0}")]
    Io(#[from] std::io::Error),
    /// The question is well formed, and the mathematics refuses it.
    #[error("{0}")]
    Refused(String),
}

impl CalcError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            CalcError::Question(_) | CalcError::Refused(_) => Exit::Data,
            CalcError::Io(_) => Exit::Software,
        }
    }
}
