//! Progress of many trials, with an estimate of the time left.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

use super::record::TrialRecord;
use super::runner::TrialRecords;
use super::setup::Setup;
use super::variant::Variant;
use crate::data::Dataset;
use crate::names::value_name;
use crate::sim::progress::ProgressStyle;

/// Seconds between two lines of a log.
const QUIET_SECONDS: f64 = 15.0;
const BAR: usize = 20;

/// The progress of many trials.
#[derive(Debug)]
pub struct TrialProgress<W> {
    out: W,
    style: ProgressStyle,
    begun: std::time::Instant,
    last_line: Option<f64>,
    estimate: ProgressEstimate,
}

impl<W: Write> TrialProgress<W> {
    /// Progress on `out`; write errors are ignored.
    pub fn new(out: W, style: ProgressStyle) -> Self {
        let begun = std::time::Instant::now();
        Self { out, style, begun, last_line: None, estimate: ProgressEstimate::default() }
    }

    /// Shows what is done already and what is to do.
    pub fn start(&mut self, records: &TrialRecords, missing: &[&Setup], jobs: usize) {
        self.estimate = ProgressEstimate::new(records.iter(), missing, jobs);
        let (done, wanted) = (self.estimate.done, self.estimate.wanted);
        match self.style {
            ProgressStyle::Silent => {}
            _ if done > 0 => self.line(&format!("{done} of {wanted} trials are done already")),
            _ if wanted == 1 => self.line("1 trial"),
            _ => self.line(&format!("{wanted} trials, {} at the same time", jobs.clamp(1, wanted.max(1)))),
        }
    }

    /// Shows a closed round of a running trial, `seconds` after it began.
    pub fn round(&mut self, setup: &Setup, round: u32, seconds: f64) {
        self.estimate.round(setup, round, seconds);
        if let ProgressStyle::Live { coloured } = self.style {
            let (on, off) = if coloured { ("\x1b[36m", "\x1b[0m") } else { ("", "") };
            let full = (BAR as f64 * self.estimate.share()) as usize;
            let bar = format!("{}{}", "━".repeat(full.min(BAR)), "╌".repeat(BAR.saturating_sub(full)));
            let text = format!("{on}{bar}{off} {}", self.estimate.text());
            let _ = write!(self.out, "\r\x1b[?7l{text}\x1b[K\x1b[?7h");
            let _ = self.out.flush();
        }
    }

    /// Shows a finished trial.
    pub fn trial(&mut self, record: &TrialRecord) {
        self.estimate.trial(record);
        let now = self.begun.elapsed().as_secs_f64();
        let due = self.last_line.is_none_or(|last| now - last >= QUIET_SECONDS);
        if self.style == ProgressStyle::Plain && (due || self.estimate.done == self.estimate.wanted) {
            self.last_line = Some(now);
            self.line(&self.estimate.text());
        }
    }

    /// Counts a failed trial; its cause is printed at the end.
    pub fn failed(&mut self, setup: &Setup) {
        self.estimate.failed(setup);
    }

    /// Clears the line, so that what follows starts on an empty one.
    pub fn finish(&mut self) {
        if let ProgressStyle::Live { .. } = self.style {
            let _ = write!(self.out, "\r\x1b[K");
            let _ = self.out.flush();
        }
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{text}");
    }
}

/// An estimate of the time of trials; seconds are passed in, it has no clock.
#[derive(Debug, Default)]
struct ProgressEstimate {
    wanted: usize,
    done: usize,
    jobs: usize,
    rounds_at_start: f64,
    /// Rounds to do, by cost class.
    left: HashMap<CostClass, f64>,
    /// Seconds and rounds of trials that are done.
    spent: HashMap<CostClass, (f64, f64)>,
    running: HashMap<PathBuf, (CostClass, f64, f64)>,
    latest: String,
}

/// Trials that cost about the same a round.
type CostClass = (Dataset, Variant);

impl ProgressEstimate {
    fn new<'a>(done: impl Iterator<Item = &'a TrialRecord>, missing: &[&Setup], jobs: usize) -> Self {
        let mut estimate = Self { jobs: jobs.max(1), ..Default::default() };
        for record in done {
            estimate.spend(record);
        }
        for setup in missing {
            *estimate.left.entry(class(setup)).or_default() += f64::from(setup.rounds);
        }
        estimate.wanted = estimate.done + missing.len();
        estimate.rounds_at_start = estimate.left.values().sum();
        estimate
    }

    fn spend(&mut self, record: &TrialRecord) {
        self.done += 1;
        let spent = self.spent.entry(class(&record.setup)).or_default();
        spent.0 += record.seconds;
        spent.1 += f64::from(record.setup.rounds);
    }

    fn round(&mut self, setup: &Setup, round: u32, seconds: f64) {
        self.running.insert(setup.path(), (class(setup), f64::from(round), seconds));
        let round = format!("round {round} of {}", setup.rounds);
        self.latest = format!(
            "{}, {}, seed {}: {round}",
            value_name(&setup.dataset),
            setup.variant.label(),
            setup.seed
        );
    }

    fn failed(&mut self, setup: &Setup) {
        self.drop_rounds(setup);
        self.wanted -= 1;
    }

    fn drop_rounds(&mut self, setup: &Setup) {
        self.running.remove(&setup.path());
        if let Some(left) = self.left.get_mut(&class(setup)) {
            *left -= f64::from(setup.rounds);
        }
    }

    fn trial(&mut self, record: &TrialRecord) {
        self.drop_rounds(&record.setup);
        self.spend(record);
        self.latest = format!(
            "{}, {}, seed {}: {:.1} s",
            value_name(&record.setup.dataset),
            record.setup.variant.label(),
            record.setup.seed,
            record.seconds
        );
    }

    /// The share of the rounds that is done, of those that were missing.
    fn share(&self) -> f64 {
        let running: f64 = self.running.values().map(|(_, rounds, _)| rounds).sum();
        let left = self.left.values().sum::<f64>() - running;
        if self.rounds_at_start > 0.0 { 1.0 - left / self.rounds_at_start } else { 1.0 }
    }

    /// Seconds to the end, from the seconds a round took so far: of the same kind, or else of any.
    fn seconds_left(&self) -> Option<f64> {
        let mut spent = self.spent.clone();
        let mut left = self.left.clone();
        for &(class, rounds, seconds) in self.running.values() {
            let entry = spent.entry(class).or_default();
            (entry.0, entry.1) = (entry.0 + seconds, entry.1 + rounds);
            *left.entry(class).or_default() -= rounds;
        }
        let all = spent.values().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let rate = |(seconds, rounds): (f64, f64)| (rounds > 0.0).then(|| seconds / rounds);
        let mean = rate(all)?;
        let work: f64 = (left.iter())
            .map(|(class, rounds)| rounds * spent.get(class).copied().and_then(rate).unwrap_or(mean))
            .sum();
        let workers = self.jobs.min(self.wanted - self.done).max(1);
        Some(work / workers as f64)
    }

    fn text(&self) -> String {
        let left = match self.seconds_left() {
            _ if self.done == self.wanted => String::new(),
            Some(seconds) => format!(", about {} left", duration(seconds)),
            None => String::new(),
        };
        format!("{} of {} trials done{left}  ({})", self.done, self.wanted, self.latest)
    }
}

fn class(setup: &Setup) -> CostClass {
    (setup.dataset, setup.variant)
}

/// A duration for readers.
pub fn duration(seconds: f64) -> String {
    match seconds.max(0.0).round() as u64 {
        s if s < 100 => format!("{s} s"),
        s if s < 100 * 60 => format!("{} min", (s + 30) / 60),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::AsPublished;
    use crate::scenario::Corruption;

    fn setup(variant: Variant, seed: u64) -> Setup {
        let (dataset, corruption) = (Dataset::Mnist, Corruption::FeatureNoise);
        Setup { rounds: 100, ..Setup::published(dataset, corruption, variant, AsPublished::Paper, seed) }
    }

    fn estimate(jobs: usize) -> ProgressEstimate {
        let setups = [(Variant::Paper, 1), (Variant::Fedavg, 1), (Variant::Paper, 2)];
        let setups = setups.map(|(variant, seed)| setup(variant, seed));
        ProgressEstimate::new(std::iter::empty(), &setups.each_ref(), jobs)
    }

    #[test]
    fn time_left_is_that_of_the_rounds_to_come_at_the_speed_of_their_kind() {
        let mut estimate = estimate(1);
        assert_eq!(estimate.seconds_left(), None);
        // 2 s a round: 50 rounds of this trial and 100 of its like; for FedAvg nothing better is known.
        estimate.round(&setup(Variant::Paper, 1), 50, 100.0);
        assert_eq!(estimate.seconds_left(), Some(500.0));
        // FedAvg turns out to need 1 s a round, and has 90 left.
        estimate.round(&setup(Variant::Fedavg, 1), 10, 10.0);
        assert_eq!(estimate.seconds_left(), Some(390.0));
        assert!((estimate.share() - 0.2).abs() < 1e-12, "60 of 300 rounds");
    }

    #[test]
    fn trials_at_the_same_time_share_the_time_left() {
        let mut estimate = estimate(2);
        estimate.round(&setup(Variant::Paper, 1), 50, 100.0);
        assert_eq!(estimate.seconds_left(), Some(250.0));
        assert!(estimate.text().starts_with("0 of 3 trials done, about 4 min left"), "{}", estimate.text());
    }

    fn shown(style: ProgressStyle) -> String {
        let (mut out, setup) = (Vec::new(), setup(Variant::Gog, 1));
        let mut progress = TrialProgress::new(&mut out, style);
        progress.start(&TrialRecords::default(), &[&setup], 2);
        progress.round(&setup, 25, 50.0);
        progress.finish();
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_terminal_sees_one_line_and_a_log_a_line_now_and_then() {
        let live = shown(ProgressStyle::Live { coloured: false });
        assert!(live.contains("━━━━━╌") && live.contains("0 of 1 trials done, about 3 min left"), "{live:?}");
        assert!(
            live.contains("mnist, GoG, seed 1: round 25 of 100") && !live.contains("\x1b[36m"),
            "{live:?}"
        );
        assert!(live.ends_with("\r\x1b[K"));
        assert!(shown(ProgressStyle::Live { coloured: true }).contains("\x1b[36m"));
        assert_eq!(shown(ProgressStyle::Plain), "1 trial\n");
        assert_eq!(shown(ProgressStyle::Silent), "");
    }

    #[test]
    fn durations_are_as_precise_as_they_need_to_be() {
        assert_eq!([7.4, 99.0, 150.0, 7_300.0].map(duration), ["7 s", "99 s", "3 min", "2 h 1 min"]);
    }
}
