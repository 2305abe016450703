//! The record of a trial with agents.

use std::path::Path;

use evenhand_program::exit::Exit;
use serde::{Deserialize, Serialize};

use super::picture::GamePicture;
use super::setup::GameSetup;
use crate::experiment::stored_file::{self, StoredFileError, StoredKind};

static RECORD: StoredKind = StoredKind { name: "trial of agents", format: 1, flags: "--out DIR" };

/// The figures of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GameRecord {
    pub(super) format: u16,
    /// Its setup.
    pub setup: GameSetup,
    /// Pearson of the online scores with ζ, over the rounds in which nodes were drawn; lower is fairer.
    pub rho_score: Option<f64>,
    /// Pearson of the standings with ζ.
    pub rho_standing: Option<f64>,
    /// Pearson of the mean staleness with ζ; higher is fairer.
    pub rho_staleness: Option<f64>,
    /// By node: mean score of the model it held, over the rounds in which nodes were drawn.
    pub scores: Vec<f64>,
    /// By node: mean staleness in these rounds.
    pub waits: Vec<f64>,
    /// By node: its standing in the end.
    pub standings: Vec<f64>,
    /// By node: rounds in which it received the model.
    pub drawn: Vec<u32>,
    /// By round: mean score over nodes.
    pub curve: Vec<f64>,
    /// By node and round: the score of the model it held.
    pub node_curves: Vec<Vec<f64>>,
    /// The first round in which not everybody was drawn.
    pub drawn_from: Option<u32>,
    /// By node: its decisions.
    pub decisions: Vec<u64>,
    /// Frames of an episode with the last model.
    pub film: Vec<GamePicture>,
    /// Its score up to the last frame.
    pub film_score: f64,
    /// Seconds that the trial took.
    pub seconds: f64,
}

/// A record that cannot be used or stored.
#[derive(Debug, thiserror::Error)]
pub enum GameRecordError {
    /// The file cannot be used, or not be written.
    #[error(transparent)]
    Stored(#[from] StoredFileError),
    /// The record is of other settings.
    #[error("{path} holds a trial with other settings; remove it, or choose another --out DIR")]
    OtherSetup {
        /// The file.
        path: String,
    },
}

impl GameRecordError {
    /// The exit code of a program that ends by this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Stored(error) => error.exit(),
            Self::OtherSetup { .. } => Exit::Usage,
        }
    }
}

impl GameRecord {
    /// An empty record.
    pub(super) fn of(setup: &GameSetup) -> Self {
        Self {
            format: RECORD.format,
            setup: setup.clone(),
            rho_score: None,
            rho_standing: None,
            rho_staleness: None,
            scores: Vec::new(),
            waits: Vec::new(),
            standings: Vec::new(),
            drawn: Vec::new(),
            curve: Vec::new(),
            node_curves: Vec::new(),
            drawn_from: None,
            decisions: Vec::new(),
            film: Vec::new(),
            film_score: 0.0,
            seconds: 0.0,
        }
    }

    /// The record of a setup in the folder `out`, if there is one.
    pub fn load(out: &Path, setup: &GameSetup) -> Result<Option<Self>, GameRecordError> {
        let path = out.join(setup.path());
        let Some(record) = RECORD.load::<GameRecord>(&path)? else { return Ok(None) };
        // Numbers come back from JSON with an error in their last bit: ours have to make the same journey.
        let ours: GameSetup = serde_json::to_string(setup)
            .and_then(|text| serde_json::from_str(&text))
            .map_err(|cause| RECORD.malformed(&path, cause))?;
        if record.setup != ours {
            return Err(GameRecordError::OtherSetup { path: path.display().to_string() });
        }
        Ok(Some(Self { setup: setup.clone(), ..record }))
    }

    /// Stores it in the folder `out`, whole or not at all.
    pub fn save(&self, out: &Path) -> Result<(), GameRecordError> {
        Ok(stored_file::save(&out.join(self.setup.path()), self)?)
    }

    /// Mean score over nodes, in the rounds in which nodes were drawn.
    pub fn mean_score(&self) -> Option<f64> {
        (!self.scores.is_empty()).then(|| self.scores.iter().sum::<f64>() / self.scores.len() as f64)
    }
}
