//! Tables of trials with agents: means over trials with standard errors, beside the published figures.

use evenhand_agents::GridGame;
use serde::Serialize;

use super::published::published_cell;
use super::record::GameRecord;
use crate::experiment::estimate::Estimate;
use crate::experiment::variant::Variant;
use crate::names::value_name;
use crate::scenario::AgentCorruption;

/// The strategies of the published table, ours in three forms.
pub fn strategies() -> Vec<Variant> {
    use Variant::{Evenhand, Fedavg, Fgfl, Gog, Paper, PaperCredit, QFfl};
    vec![Evenhand, Paper, PaperCredit, Fedavg, QFfl, Fgfl, Gog]
}

/// Trials as a table: a row for each game, corruption and strategy.
#[derive(Debug, Clone, Serialize)]
pub struct GameTable {
    /// Its rows.
    pub rows: Vec<GameRow>,
}

/// The trials of one strategy with one game and corruption.
#[derive(Debug, Clone, Serialize)]
pub struct GameRow {
    /// The game.
    pub task: GridGame,
    /// What made agents differ.
    pub corruption: AgentCorruption,
    /// 1 as published; at 0 agents were alike.
    pub level: f64,
    /// The strategy.
    pub strategy: Variant,
    /// ρ of online score and ζ; negative is fair where ζ is noise.
    pub rho_score: Option<Estimate>,
    /// ρ of standing and ζ.
    pub rho_standing: Option<Estimate>,
    /// ρ of mean staleness and ζ.
    pub rho_staleness: Option<Estimate>,
    /// Mean score.
    pub score: Option<Estimate>,
    /// The first round in which not everybody was drawn.
    pub drawn_from: Option<Estimate>,
    /// Hours of a trial.
    pub hours: Option<Estimate>,
    /// The published figure and its standard error.
    pub published: Option<(f64, f64)>,
    /// Trials.
    pub trials: usize,
}

impl GameTable {
    /// The table of some records.
    pub fn of(records: &[GameRecord]) -> Self {
        let key = |record: &GameRecord| {
            let setup = &record.setup;
            (setup.task, setup.corruption, setup.level == 0.0, setup.variant)
        };
        let mut keys: Vec<_> = records.iter().map(key).collect();
        keys.sort();
        keys.dedup();
        let rows = keys.into_iter().map(|wanted| {
            let of: Vec<&GameRecord> = records.iter().filter(|record| key(record) == wanted).collect();
            let estimate =
                |value: fn(&GameRecord) -> Option<f64>| Estimate::of(of.iter().map(|record| value(record)));
            let (task, corruption, is_control, strategy) = wanted;
            GameRow {
                task,
                corruption,
                level: of[0].setup.level,
                strategy,
                rho_score: estimate(|record| record.rho_score),
                rho_standing: estimate(|record| record.rho_standing),
                rho_staleness: estimate(|record| record.rho_staleness),
                score: estimate(GameRecord::mean_score),
                drawn_from: estimate(|record| record.drawn_from.map(f64::from)),
                hours: estimate(|record| Some(record.seconds / 3600.0)),
                published: published_cell(strategy, corruption, task).filter(|_| !is_control),
                trials: of.len(),
            }
        });
        Self { rows: rows.collect() }
    }

    /// The table as text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{:<15} {:<12} {:<13} {:>16} {:>16} {:>16} {:>16} {:>14} {:>6} {:>6}\n",
            "game",
            "differ by",
            "strategy",
            "ρ(score, ζ)",
            "published",
            "ρ(standing, ζ)",
            "ρ(staleness, ζ)",
            "score",
            "drawn",
            "hours"
        );
        for row in &self.rows {
            let of = |estimate: &Option<Estimate>, decimals| {
                estimate.as_ref().map_or("–".to_owned(), |estimate| estimate.text(decimals, row.trials))
            };
            let mean = |estimate: &Option<Estimate>, decimals: usize| {
                estimate.as_ref().map_or("–".to_owned(), |estimate| format!("{:.decimals$}", estimate.mean))
            };
            let published =
                row.published.map_or("–".to_owned(), |(mean, error)| format!("{mean:.3} ± {error:.3}"));
            let corruption = value_name(&row.corruption);
            let strategy = row.strategy.name();
            let name = if row.level == 0.0 { format!("{strategy} (alike)") } else { strategy };
            text += &format!(
                "{:<15} {corruption:<12} {name:<13} {:>16} {published:>16} {:>16} {:>16} {:>14} {:>6} {:>6}\n",
                row.task.name(),
                of(&row.rho_score, 3),
                of(&row.rho_standing, 3),
                of(&row.rho_staleness, 3),
                of(&row.score, 2),
                mean(&row.drawn_from, 0),
                mean(&row.hours, 2),
            );
        }
        text
    }
}
