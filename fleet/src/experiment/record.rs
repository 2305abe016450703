//! The record of a finished trial on disk.

use std::path::{Path, PathBuf};

use evenhand_fairness::measures::{self, Summary};
use evenhand_program::exit::Exit;
use serde::{Deserialize, Serialize};

use super::details::TrialDetails;
use super::detection::DetectionCounts;
use super::setup::Setup;
use super::stored_file::{self, StoredFileError, StoredKind};
use super::worth::truth::KnownWorths;
use crate::data::{Dataset, SamplePool};
use crate::sim::online::OnlineScore;
use crate::sim::{RecordedRun, RunFigures};

/// Its format changes when the same setup would yield other figures, or is written in other words: records of another
/// number must not be mixed with ours.
pub static RECORD: StoredKind = StoredKind { name: "result of a trial", format: 7, flags: "--out DIR" };

/// A finished trial: its setup, its figures, and its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialRecord {
    /// Always that of [`RECORD`].
    pub format: u16,
    /// The setup.
    pub setup: Setup,
    /// The figures.
    pub figures: RunFigures,
    /// The learning curve.
    pub curve: LearningCurve,
    /// What the paper plots of it.
    #[serde(default)]
    pub details: TrialDetails,
    /// Answers that were taken for copies.
    pub detections: DetectionCounts,
    /// Time of the whole trial.
    pub seconds: f64,
    /// A remark that belongs beside its figures.
    pub note: Option<String>,
    /// Passes through its data.
    pub passes: usize,
    /// Samples in its data set's files, where that is one number for all trials and the record has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<usize>,
    /// The worth of its nodes by retraining, in their order; known from elsewhere and not stored here.
    #[serde(skip)]
    pub worths: Option<KnownWorths>,
}

/// The result of a trial: [`TrialRecord`] without what its caller knows already.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialResult {
    /// The trial in numbers.
    pub figures: RunFigures,
    /// The learning curve.
    pub curve: LearningCurve,
    /// What the paper plots of it.
    pub details: TrialDetails,
    /// Answers that were taken for copies, where they were counted.
    pub detections: DetectionCounts,
    /// Passes through the data.
    pub passes: usize,
}

/// Means over nodes, one a round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LearningCurve {
    /// Mean online losses; none for a round whose loss is no number.
    pub losses: Vec<Option<f64>>,
    /// Mean online accuracies, or else mean absolute percentage errors.
    pub scores: Vec<Option<f64>>,
}

impl TrialResult {
    /// The result of a run, whose data were passed through so often.
    pub fn of(run: &RecordedRun, passes: usize) -> Self {
        let mean = |scores: &[OnlineScore], of: fn(&OnlineScore) -> f64| {
            let values: Vec<f64> = scores.iter().map(of).collect();
            Summary::of(&values).map(|over| over.mean).filter(|mean| mean.is_finite())
        };
        let losses = run.online.iter().map(|scores| mean(scores, |score| score.loss));
        let scores = (run.online.iter())
            .map(|scores| mean(scores, |score| score.accuracy).or_else(|| mean(scores, |score| score.mape)));
        let curve = LearningCurve { losses: losses.collect(), scores: scores.collect() };
        let details = TrialDetails::of(run);
        Self { figures: run.figures(), curve, details, detections: DetectionCounts::default(), passes }
    }
}

/// A record that cannot be used or stored.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file cannot be used, or not be written.
    #[error(transparent)]
    Stored(#[from] StoredFileError),
    /// The record is of other data.
    #[error(
        "{} is of {found} samples, other trials of {} are of {expected}: the files were not the same; remove the one or \
         the other, or choose another --out DIR",
        path.display(), dataset.name()
    )]
    OtherData {
        /// The file.
        path: PathBuf,
        /// The data set.
        dataset: Dataset,
        /// Samples of this record.
        found: usize,
        /// Samples of the others.
        expected: usize,
    },
    /// The record is of other settings.
    #[error(
        "{} holds a trial with other settings ({difference}); remove it, or choose another --out DIR",
        path.display()
    )]
    OtherSetup {
        /// The file.
        path: PathBuf,
        /// The differences.
        difference: String,
    },
}

impl RecordError {
    /// The exit code of a program that ends by this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Stored(error) => error.exit(),
            Self::OtherData { .. } | Self::OtherSetup { .. } => Exit::Usage,
        }
    }
}

impl TrialRecord {
    /// The record of `setup` in the folder `out`, if there is one.
    pub fn load(out: &Path, setup: &Setup) -> Result<Option<Self>, RecordError> {
        let path = out.join(setup.path());
        let Some(record) = RECORD.load::<TrialRecord>(&path)? else { return Ok(None) };
        // Numbers come back from JSON with an error in their last bit: ours have to make the same journey.
        let ours: Setup = serde_json::to_string(setup)
            .and_then(|text| serde_json::from_str(&text))
            .map_err(|cause| RECORD.malformed(&path, cause))?;
        if record.setup != ours {
            return Err(RecordError::OtherSetup { difference: difference(&record.setup, &ours), path });
        }
        Ok(Some(Self { setup: setup.clone(), ..record }))
    }

    /// Stores it in the folder `out`, whole or not at all.
    pub fn save(&self, out: &Path) -> Result<(), RecordError> {
        Ok(stored_file::save(&out.join(self.setup.path()), self)?)
    }

    /// The record of a result. JSON has no infinity: what is not a number, after a model diverged, is left out.
    pub fn new(setup: Setup, result: TrialResult, seconds: f64, pool: &SamplePool) -> Self {
        let TrialResult { mut figures, curve, details, detections, passes } = result;
        let finite = |summary: &Summary| {
            [summary.mean, summary.min, summary.max, summary.std].iter().all(|value| value.is_finite())
        };
        let number = |value: &f64| value.is_finite();
        figures.rho_loss = figures.rho_loss.filter(number);
        figures.rho_loss_late = figures.rho_loss_late.filter(number);
        figures.rho_staleness = figures.rho_staleness.filter(number);
        figures.rho_accuracy = figures.rho_accuracy.filter(number);
        figures.online_loss = figures.online_loss.filter(finite);
        figures.online_loss_std = figures.online_loss_std.filter(number);
        figures.online_accuracy = figures.online_accuracy.filter(finite);
        figures.online_mape = figures.online_mape.filter(finite);
        figures.recall = figures.recall.filter(number);
        figures.autocorrelation = figures.autocorrelation.filter(number);
        figures.henze_zirkler =
            figures.henze_zirkler.filter(|test| test.statistic.is_finite() && test.p_value.is_finite());
        figures.nodes.retain(|node| {
            [node.zeta, node.standing, node.sampling_probability, node.mean_staleness, node.online_loss]
                .iter()
                .all(number)
        });
        // Where data have owners, it depends on which were chosen; synthetic data are as many as are asked for.
        let counted = pool.owners.is_none() && setup.dataset != Dataset::Synthetic;
        let (note, recorded) = (pool.note.clone(), counted.then_some(pool.recorded));
        Self {
            format: RECORD.format,
            setup,
            figures,
            curve,
            details,
            detections,
            seconds,
            note,
            passes,
            recorded,
            worths: None,
        }
    }

    /// Pearson of the standings with the worth of the nodes; none if that is not known, or either is equal for all.
    pub fn rho_worth(&self) -> Option<f64> {
        self.rho_of_standings(&self.worths.as_ref()?.to_all)
    }

    /// The same with their worth to the others.
    pub fn rho_worth_to_others(&self) -> Option<f64> {
        self.rho_of_standings(self.worths.as_ref()?.to_others.as_deref()?)
    }

    fn rho_of_standings(&self, worths: &[f64]) -> Option<f64> {
        let standings: Vec<f64> = self.figures.nodes.iter().map(|node| node.standing).collect();
        (worths.len() == standings.len()).then(|| measures::pearson(&standings, worths))?
    }
}

/// The remarks beside the figures of several trials, each once.
pub fn notes<'a>(records: impl IntoIterator<Item = &'a TrialRecord>) -> Vec<String> {
    let (mut notes, mut passes) = (Vec::new(), 1);
    for record in records {
        notes.extend(record.note.clone().filter(|note| !notes.contains(note)));
        passes = passes.max(record.passes);
    }
    if passes > 1 {
        notes.push(format!("Samples are seen up to {passes} times: the trials need more than there are."));
    }
    notes
}

fn difference(theirs: &Setup, ours: &Setup) -> String {
    let named: Vec<String> = (theirs.flags().into_iter().zip(ours.flags()))
        .filter(|(theirs, ours)| theirs != ours)
        .map(|((name, theirs), (_, ours))| format!("{name} {theirs}, not {ours}"))
        .collect();
    if named.is_empty() { "of another kind".into() } else { named.join("; ") }
}
