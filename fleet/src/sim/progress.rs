//! The progress line on stderr.

use std::io::{self, IsTerminal, Write};

use crate::outcome::{Round, Settings, Stage};

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
    stage: Option<Stage>,
}

impl<W: Write> RunProgress<W> {
    /// Progress on `out`; write errors are ignored.
    pub fn new(out: W, style: ProgressStyle) -> Self {
        Self { out, style, stage: None }
    }

    /// Shows what the run is waiting for before its first round.
    pub fn waiting(&mut self, what: &str) {
        match self.style {
            ProgressStyle::Live { .. } => self.redraw(what),
            ProgressStyle::Plain | ProgressStyle::Silent => {}
        }
    }

    /// Shows a round that was finished.
    pub fn round(&mut self, settings: &Settings, ids: &[String], round: &Round, p_value: Option<f64>) {
        let changed = self.stage.replace(round.stage) != Some(round.stage);
        match self.style {
            ProgressStyle::Live { coloured } => self.redraw(&live(settings, ids, round, p_value, coloured)),
            ProgressStyle::Plain if changed => {
                let what = match round.stage {
                    Stage::Exploring => "exploring, everybody takes part".to_owned(),
                    Stage::Exploiting => format!("exploiting, {} draws a round", settings.k),
                };
                let _ = writeln!(self.out, "round {} of {}: {what}", round.round, settings.rounds);
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

fn live(settings: &Settings, ids: &[String], round: &Round, p_value: Option<f64>, coloured: bool) -> String {
    let (phase, colour) = match round.stage {
        Stage::Exploring => ("exploring ", "\x1b[36m"),
        Stage::Exploiting => ("exploiting", "\x1b[32m"),
    };
    let (on, off) = if coloured { (colour, "\x1b[0m") } else { ("", "") };
    let full = BAR * round.round as usize / settings.rounds.max(1) as usize;
    let bar = format!("{}{}", "━".repeat(full.min(BAR)), "╌".repeat(BAR.saturating_sub(full)));
    let p_value = p_value.map_or("–".to_owned(), |p| format!("{p:.2}"));
    format!(
        "{on}{phase} {bar}{off} round {}/{}  loss {:.4}  p {p_value} (stop at {})  drawn {}",
        round.round,
        settings.rounds,
        round.loss,
        settings.strictness,
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
    use super::*;

    fn settings() -> Settings {
        Settings {
            rounds: 60,
            seed: 1,
            transport: "memory".into(),
            codec: "f32".into(),
            strategy: "evenhand".into(),
            sampler: "credit".into(),
            temperature: 0.1,
            window: 8,
            strictness: 0.7,
            watched: 4,
            k: 2,
            command: String::new(),
        }
    }

    fn round(number: u32, stage: Stage, drawn: Vec<usize>) -> Round {
        Round {
            round: number,
            stage,
            drawn,
            loss: 0.25,
            contributions: None,
            standings: vec![0.0; 3],
            sampling_probabilities: vec![1.0 / 3.0; 3],
            p_value: None,
            online_losses: vec![0.0; 3],
            online_mapes: vec![0.0; 3],
            online_accuracies: vec![0.0; 3],
        }
    }

    fn shown(style: ProgressStyle) -> String {
        let mut out = Vec::new();
        let mut progress = RunProgress::new(&mut out, style);
        let ids = ["a", "b", "c"].map(str::to_owned);
        progress.round(&settings(), &ids, &round(1, Stage::Exploring, vec![0, 1, 2]), None);
        progress.round(&settings(), &ids, &round(2, Stage::Exploring, vec![0, 1, 2]), Some(0.5));
        progress.round(&settings(), &ids, &round(3, Stage::Exploiting, vec![0, 2]), Some(0.75));
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
