//! The runner of trials with agents: those that are missing are run one after another and stored when they are done.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use super::engine::GameSource;
use super::record::{GameRecord, GameRecordError};
use super::setup::GameSetup;
use super::trial::{self, GameRound};
use crate::experiment::ExperimentError;
use crate::experiment::progress::duration;
use crate::names::value_name;
use crate::sim::Interrupt;
use crate::sim::progress::ProgressStyle;

/// Rounds between two lines of progress in a log.
const ROUNDS_A_LINE: u32 = 25;

/// The runner of trials.
pub struct GameRunner<'a> {
    /// The folder of records.
    pub out: &'a Path,
    /// The Python that has ale-py.
    pub python: &'a Path,
    /// The user's request to end.
    pub interrupt: &'a Interrupt,
}

/// Progress on stderr.
pub struct GameProgress<W> {
    out: W,
    style: ProgressStyle,
    begun: Instant,
    /// Rounds run so far, and still to run.
    done: u64,
    left: u64,
}

impl<W: Write> GameProgress<W> {
    /// Progress before the first trial.
    pub fn new(out: W, style: ProgressStyle) -> Self {
        Self { out, style, begun: Instant::now(), done: 0, left: 0 }
    }

    fn round(&mut self, trial: &str, setup: &GameSetup, round: &GameRound) {
        self.done += 1;
        self.left = self.left.saturating_sub(1);
        let score = round.scores.iter().sum::<f64>() / round.scores.len().max(1) as f64;
        let left = self.begun.elapsed().as_secs_f64() / self.done as f64 * self.left as f64;
        let line = format!(
            "{trial}  round {}/{}  score {score:.2}  drawn {}  {} left",
            round.round,
            setup.rounds,
            round.drawn.len(),
            duration(left)
        );
        // If the terminal is gone, the results remain.
        let _unseen = match self.style {
            ProgressStyle::Live { .. } => write!(self.out, "\r\x1b[?7l{line}\x1b[K\x1b[?7h"),
            ProgressStyle::Plain if round.round % ROUNDS_A_LINE == 1 => writeln!(self.out, "{line}"),
            ProgressStyle::Plain | ProgressStyle::Silent => Ok(()),
        };
        if let Some(notice) = &round.notice {
            let _unseen = writeln!(self.out, "\r{notice}");
        }
        let _unseen = self.out.flush();
    }

    fn finish(&mut self) {
        if let ProgressStyle::Live { .. } = self.style {
            let _unseen = write!(self.out, "\r\x1b[K");
        }
    }
}

impl GameRunner<'_> {
    /// The records of setups: from disk where they are there, from new trials where not. Fewer when interrupted.
    pub fn records<W: Write>(
        &self,
        setups: &[GameSetup],
        mut progress: GameProgress<W>,
    ) -> Result<Vec<GameRecord>, ExperimentError> {
        let mut records = Vec::new();
        let mut missing: Vec<&GameSetup> = Vec::new();
        for setup in setups {
            match GameRecord::load(self.out, setup)? {
                Some(record) => records.push(record),
                None => missing.push(setup),
            }
        }
        // Seed by seed, so that every variant soon has its first trial.
        missing.sort_by_key(|setup| setup.seed);
        progress.left = missing.iter().map(|setup| u64::from(setup.rounds)).sum();
        for (number, setup) in missing.iter().enumerate() {
            let trial = format!(
                "trial {} of {}: {} {} {} seed {}",
                number + 1,
                missing.len(),
                setup.task.name(),
                value_name(&setup.corruption),
                setup.variant.name(),
                setup.seed
            );
            let source =
                GameSource { game: setup.task, engine: setup.engine, python: self.python.to_owned() };
            let begun = Instant::now();
            let record = trial::run(setup, &source, self.interrupt, &mut |round, _| {
                progress.round(&trial, setup, round);
            })?;
            let Some(record) = record else { break };
            let record = GameRecord { seconds: begun.elapsed().as_secs_f64(), ..record };
            record.save(self.out)?;
            records.push(record);
        }
        progress.finish();
        Ok(records)
    }

    /// The records that are there.
    pub fn stored(&self, setups: &[GameSetup]) -> Result<Vec<GameRecord>, GameRecordError> {
        let records = setups.iter().map(|setup| GameRecord::load(self.out, setup));
        records.filter_map(Result::transpose).collect()
    }
}
