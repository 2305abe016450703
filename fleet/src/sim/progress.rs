//! The progress line on stderr.

use std::io::{self, IsTerminal, Write};

use evenhand_federation::Rules;
use evenhand_report::{RoundSummary, StopCriterion};

const BAR: usize = 20;
const NAMED_MAX: usize = 6;

/// The form of progress on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressStyle {
    /// Nothing.
    Silent,
    /// A line when the phase changes: for logs.
    Plain,
    /// One line that is overwritten: for terminals.
    Live {
        /// True if it may be coloured.
        coloured: bool,
    },
}

impl ProgressStyle {
    /// The style for stderr as it is, with `NO_COLOR` and `--no-progress`.
    pub fn of_stderr(no_progress: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        match (no_progress, io::stderr().is_terminal() && !dumb) {
            (true, _) => ProgressStyle::Silent,
            (false, false) => ProgressStyle::Plain,
            (false, true) => ProgressStyle::Live { coloured: !set("NO_COLOR") },
        }
    }
}

/// The progress of a run.
#[derive(Debug)]
pub struct RunProgress<W> {
    out: W,
    style: ProgressStyle,
    /// True if the last round explored.
    exploring: Option<bool>,
}

impl<W: Write> RunProgress<W> {
    /// Progress on `out`; write errors are ignored.
    pub fn new(out: W, style: ProgressStyle) -> Self {
        Self { out, style, exploring: None }
    }

    /// Shows what the run is waiting for before its first round.
    pub fn waiting(&mut self, what: &str) {
        match self.style {
            ProgressStyle::Live { .. } => self.redraw(what),
            ProgressStyle::Plain | ProgressStyle::Silent => {}
        }
    }

    /// Shows a round that was finished.
    pub fn round(&mut self, rules: &Rules, ids: &[String], round: &RoundSummary, p_value: Option<f64>) {
        let changed = self.exploring.replace(round.exploring) != Some(round.exploring);
        match self.style {
            ProgressStyle::Live { coloured } => self.redraw(&live(rules, ids, round, p_value, coloured)),
            ProgressStyle::Plain if changed => {
                let what = match round.exploring {
                    true => "exploring, everybody takes part".to_owned(),
                    false => format!("exploiting, {} draws a round", rules.exploiting.k),
                };
                let _ = writeln!(self.out, "round {} of {}: {what}", round.round, rules.federation.rounds);
            }
            ProgressStyle::Plain | ProgressStyle::Silent => {}
        }
    }

    /// Clears the line, so that what follows starts on an empty one.
    pub fn finish(&mut self) {
        if let ProgressStyle::Live { .. } = self.style {
            let _ = write!(self.out, "\r\x1b[K");
            let _ = self.out.flush();
        }
    }

    /// Overwrites the line. Wrapping is off meanwhile, so that a narrow terminal cuts the line instead of scrolling.
    fn redraw(&mut self, text: &str) {
        let _ = write!(self.out, "\r\x1b[?7l{text}\x1b[K\x1b[?7h");
        let _ = self.out.flush();
    }
}

fn live(rules: &Rules, ids: &[String], round: &RoundSummary, p_value: Option<f64>, coloured: bool) -> String {
    let (phase, colour) = match round.exploring {
        true => ("exploring ", "\x1b[36m"),
        false => ("exploiting", "\x1b[32m"),
    };
    let rounds = rules.federation.rounds;
    let (on, off) = if coloured { (colour, "\x1b[0m") } else { ("", "") };
    let full = BAR * round.round as usize / rounds.max(1) as usize;
    let bar = format!("{}{}", "━".repeat(full.min(BAR)), "╌".repeat(BAR.saturating_sub(full)));
    let p_value = p_value.map_or("–".to_owned(), |p| format!("{p:.2}"));
    format!(
        "{on}{phase} {bar}{off} round {}/{}  loss {:.4}  p {p_value} (stop at {})  drawn {}",
        round.round,
        rounds,
        round.loss,
        StopCriterion::new(rules).threshold(),
        drawn(ids, &round.drawn)
    )
}

fn drawn(ids: &[String], drawn: &[usize]) -> String {
    if drawn.len() == ids.len() {
        return format!("all {}", ids.len());
    }
    let named: Vec<&str> = drawn.iter().take(NAMED_MAX).map(|&node| ids[node].as_str()).collect();
    let more = drawn.len().saturating_sub(NAMED_MAX);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", named.join(" "))
}

#[cfg(test)]
mod tests {
    use evenhand_federation::FederationConfig;

    use super::*;

    fn rules() -> Rules {
        let mut config = FederationConfig::default();
        config.federation.policy = evenhand_federation::Policy::Paper;
        config.federation.rounds = 60;
        config.exploiting.k = 2;
        Rules::new(config).expect("rules")
    }

    fn round(number: u32, exploring: bool, drawn: Vec<usize>) -> RoundSummary {
        RoundSummary {
            round: number,
            exploring,
            drawn,
            loss: 0.25,
            contributions: None,
            standings: vec![0.0; 3],
            sampling_probabilities: vec![1.0 / 3.0; 3],
            temperature: 0.1,
            stop: None,
        }
    }

    fn shown(style: ProgressStyle) -> String {
        let mut out = Vec::new();
        let mut progress = RunProgress::new(&mut out, style);
        let ids = ["a", "b", "c"].map(str::to_owned);
        progress.round(&rules(), &ids, &round(1, true, vec![0, 1, 2]), None);
        progress.round(&rules(), &ids, &round(2, true, vec![0, 1, 2]), Some(0.5));
        progress.round(&rules(), &ids, &round(3, false, vec![0, 2]), Some(0.75));
        progress.finish();
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_terminal_sees_phase_round_loss_p_value_and_draw() {
        let live = shown(ProgressStyle::Live { coloured: false });
        assert!(live.contains("round 2/60  loss 0.2500  p 0.50 (stop at 0.7)  drawn all 3"), "{live:?}");
        assert!(live.contains("exploiting") && live.contains("drawn a c"), "{live:?}");
        assert!(!live.contains("\x1b[3"), "no colour was asked for");
        assert!(shown(ProgressStyle::Live { coloured: true }).contains("\x1b[36m"));
        assert!(live.ends_with("\r\x1b[K"));
    }

    #[test]
    fn a_log_sees_one_line_a_phase_without_control_characters() {
        assert_eq!(
            shown(ProgressStyle::Plain),
            "round 1 of 60: exploring, everybody takes part\nround 3 of 60: exploiting, 2 draws a round\n"
        );
    }

    #[test]
    fn silence_is_silent() {
        assert_eq!(shown(ProgressStyle::Silent), "");
    }
}
