//! `calc stop`.

use std::io::{BufRead, Write};

use super::CalcError;

/// Answers one question.
pub fn run(_stdin: impl BufRead, _stdout: impl Write) -> Result<(), CalcError> {
    Err(CalcError::Refused("calc stop is not part of this build".into()))
}
