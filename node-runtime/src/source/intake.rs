//! Record of what a source takes in: its first inputs as they came, and the malformed ones.

use crate::reading::Reading;

/// Inputs that are recorded as they came.
const FIRST_MAX: usize = 3;
/// Length of a recorded input.
const TEXT_CHARACTERS_MAX: usize = 160;

/// What a source has taken in since it was opened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Intake {
    first: Vec<RawInput>,
    malformed: u64,
    example: Option<String>,
}

/// One input as it came, and what it became: a reading, or the reason why it is none and the setting to change.
#[derive(Debug, Clone, PartialEq)]
pub struct RawInput {
    /// The line, message or telegram, shortened.
    pub text: String,
    /// What it became.
    pub result: Result<Reading, String>,
}

impl Intake {
    /// The reading, if there is one; the input is counted, and recorded if it is one of the first or the first malformed one.
    pub(super) fn record(
        &mut self,
        text: impl FnOnce() -> String,
        result: Result<Reading, String>,
    ) -> Option<Reading> {
        if self.first.len() < FIRST_MAX {
            let text = excerpt(&text());
            if let Err(reason) = &result {
                self.add_malformed(|| format!("{text}: {reason}"));
            }
            self.first.push(RawInput { text, result: result.clone() });
        } else if let Err(reason) = &result {
            self.add_malformed(|| format!("{}: {reason}", excerpt(&text())));
        }
        result.ok()
    }

    /// Counts a malformed input; `example` is taken if it is the first.
    pub(super) fn add_malformed(&mut self, example: impl FnOnce() -> String) {
        self.malformed += 1;
        self.example.get_or_insert_with(example);
    }

    /// Counts `total` inputs so far that were dropped because they are too long, given those counted before.
    pub(super) fn dropped(&mut self, before: u64, total: u64) {
        (before..total).for_each(|_| self.add_malformed(|| "an input too long to be a reading".into()));
    }

    /// The first inputs as they came.
    pub fn first(&self) -> &[RawInput] {
        &self.first
    }

    /// Number of malformed inputs.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// The first malformed input, with the reason and the setting to change.
    pub fn example(&self) -> Option<&str> {
        self.example.as_deref()
    }
}

/// The text on one line, shortened.
pub(super) fn excerpt(text: &str) -> String {
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    let words: String = text.trim().chars().take(TEXT_CHARACTERS_MAX + 1).map(printable).collect();
    match words.char_indices().nth(TEXT_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_inputs_and_the_first_malformed_one_are_recorded() {
        let mut intake = Intake::default();
        let reading = Reading { time_ms: 0, value: 1.0 };
        for number in 0..5 {
            let result = if number < 3 { Ok(reading) } else { Err(format!("reason {number}")) };
            assert_eq!(intake.record(|| format!("input {number}\r\n"), result).is_some(), number < 3);
        }
        let texts: Vec<_> = intake.first().iter().map(|input| input.text.as_str()).collect();
        assert_eq!(texts, ["input 0", "input 1", "input 2"]);
        assert_eq!((intake.malformed(), intake.example()), (2, Some("input 3: reason 3")));
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        let long = excerpt(&format!("a\u{7}b\n{}", "ö".repeat(1000)));
        assert_eq!((long.chars().count(), long.lines().count()), (TEXT_CHARACTERS_MAX + 1, 1));
        assert_eq!(excerpt(" 1,5 \r\n"), "1,5");
    }
}
