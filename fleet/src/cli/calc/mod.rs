//! `evenhand-fleet calc`: calculators that answer a question in JSON.

mod gradient;
mod incentive;
mod shapley;
mod stop;

use std::io::{BufRead, Write};

use evenhand_fairness::FairnessError;
use evenhand_program::exit::Exit;
use serde::{Serialize, de::DeserializeOwned};

/// Calculators.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum CalcCommand {
    /// Contributions of one round: updates and weights in, Shapley values and their standard errors out
    Shapley,
    /// The stop rule on a history of contributions
    Stop,
    /// Sampling and selection probabilities, staleness, and the temperature for a wanted staleness
    Incentive,
    /// Loss and gradient of an ONNX model on one batch
    Gradient(gradient::GradientArgs),
}

impl CalcCommand {
    /// Answers the question on `stdin` on `stdout`.
    pub(crate) fn run(&self, stdin: impl BufRead, stdout: impl Write) -> Result<(), CalcError> {
        match self {
            Self::Shapley => shapley::run(stdin, stdout),
            Self::Stop => stop::run(stdin, stdout),
            Self::Incentive => incentive::run(stdin, stdout),
            Self::Gradient(args) => gradient::run(args, stdin, stdout),
        }
    }
}

/// A question without an answer.
#[derive(Debug, thiserror::Error)]
pub enum CalcError {
    /// The question is not the JSON the calculator expects.
    #[error("the question on stdin is not understood: {0}; see `evenhand-fleet calc --help`")]
    Question(#[from] serde_json::Error),
    /// A field of the question is not what it should be.
    #[error("{field}: {error}")]
    Field {
        /// The field of the question.
        field: String,
        /// The parser's error.
        error: serde_json::Error,
    },
    /// Reading the question or writing the answer failed.
    #[error("cannot read the question or write the answer: {0}")]
    Io(#[from] std::io::Error),
    /// The question is well formed, and the mathematics refuses it.
    #[error("{0}")]
    Refused(String),
}

impl From<FairnessError> for CalcError {
    fn from(error: FairnessError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// Reads a question; an error names its field.
pub(super) fn read<T: DeserializeOwned>(stdin: impl BufRead) -> Result<T, CalcError> {
    let mut json = serde_json::Deserializer::from_reader(stdin);
    let question =
        serde_path_to_error::deserialize(&mut json).map_err(|error| match error.path().to_string() {
            whole if whole == "." || whole == "?" => CalcError::Question(error.into_inner()),
            field => CalcError::Field { field, error: error.into_inner() },
        })?;
    json.end()?;
    Ok(question)
}

/// Writes an answer on one line.
pub(super) fn write(mut stdout: impl Write, answer: &impl Serialize) -> Result<(), CalcError> {
    serde_json::to_writer(&mut stdout, answer).map_err(std::io::Error::from)?;
    Ok(writeln!(stdout)?)
}

impl CalcError {
    pub(super) fn exit(&self) -> Exit {
        match self {
            CalcError::Question(_) | CalcError::Field { .. } | CalcError::Refused(_) => Exit::Data,
            CalcError::Io(_) => Exit::Software,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{CalcCommand, Exit};
    use serde_json::Value;

    /// The answer to a question that has one.
    pub(super) fn ask(calculator: &CalcCommand, question: &str) -> Value {
        let mut answer = Vec::new();
        calculator.run(question.as_bytes(), &mut answer).unwrap();
        serde_json::from_slice(&answer).unwrap()
    }

    /// The error of a question without an answer.
    pub(super) fn refused(calculator: &CalcCommand, question: &str) -> String {
        let mut answer = Vec::new();
        let error = calculator.run(question.as_bytes(), &mut answer).unwrap_err();
        assert_eq!(error.exit(), Exit::Data);
        assert!(answer.is_empty(), "no answer beside an error");
        error.to_string()
    }
}
