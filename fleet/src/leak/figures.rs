//! What attacks recovered, beside guessing.

use std::fmt::Write as _;

use evenhand_node::reading::Reading;
use rayon::prelude::*;
use serde::Serialize;

use super::LeakError;
use super::attack::attack;
use super::victim::{AttackedModel, LeakSettings, SeenKind, VictimPool};

/// A reading is recovered within this share of the household's deviation.
pub(super) const TOLERANCE: f64 = 0.1;

/// One configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeakRow {
    /// The model.
    pub model: AttackedModel,
    /// What was seen.
    pub seen: SeenKind,
    /// Samples of the batch.
    pub samples: usize,
    /// `privacy.noise`.
    pub noise: f64,
    /// Households attacked.
    pub victims: usize,
    /// Readings behind an update, on average.
    pub readings: f64,
    /// Share of them that was recovered within 0.1 standard deviations.
    pub recovered: f64,
    /// The same by the likeliest value of the public.
    pub guessed: f64,
    /// Median relative difference between the update of what was recovered and the one seen.
    pub misfit: f64,
}

/// All configurations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeakFigures {
    /// One for each.
    pub rows: Vec<LeakRow>,
}

/// Attacks every configuration; `progress` is called after each.
pub fn run(
    settings: &LeakSettings,
    households: &[Vec<Reading>],
    progress: &mut dyn FnMut(&LeakRow),
) -> Result<LeakFigures, LeakError> {
    let mut rows = Vec::new();
    for model in &settings.models {
        let pool = VictimPool::new(*model, settings, households)?;
        for (seen, samples) in settings.configurations(*model) {
            for noise in &settings.noise {
                let row = row(settings, &pool, seen, samples, *noise)?;
                progress(&row);
                rows.push(row);
            }
        }
    }
    Ok(LeakFigures { rows })
}

fn row(
    settings: &LeakSettings,
    pool: &VictimPool,
    seen: SeenKind,
    samples: usize,
    noise: f64,
) -> Result<LeakRow, LeakError> {
    let of_victim = |victim: usize| {
        let Some(case) = pool.case(victim, seen, samples, noise)? else { return Ok(None) };
        let found = attack(&case.problem, settings.effort, settings.seed.wrapping_add(victim as u64));
        let unknowns = case.problem.unknowns_at(&found.deviations);
        let near = |value: f64, of: f64, within: f64| f64::from(u8::from((value - of).abs() <= within));
        let count = case.readings.len().max(1) as f64;
        let recovered: f64 = (case.readings.iter())
            .map(|reading| {
                let value = reading.parts.iter().map(|part| unknowns[*part]).sum();
                near(value, reading.truth, TOLERANCE * reading.deviation)
            })
            .sum();
        let guessed: f64 = (case.readings.iter())
            .map(|reading| near(reading.guess, reading.truth, TOLERANCE * reading.deviation))
            .sum();
        Ok(Some((count, recovered / count, guessed / count, found.misfit)))
    };
    let found: Result<Vec<_>, LeakError> = (0..pool.victims()).into_par_iter().map(of_victim).collect();
    let found: Vec<(f64, f64, f64, f64)> = found?.into_iter().flatten().collect();
    if found.is_empty() {
        return Err(LeakError::Readings(samples));
    }
    let mean = |of: fn(&(f64, f64, f64, f64)) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
    let mut misfits: Vec<f64> = found.iter().map(|found| found.3).collect();
    misfits.sort_by(f64::total_cmp);
    Ok(LeakRow {
        model: pool.model(),
        seen,
        samples,
        noise,
        victims: found.len(),
        readings: mean(|found| found.0),
        recovered: mean(|found| found.1),
        guessed: mean(|found| found.2),
        misfit: misfits[misfits.len() / 2],
    })
}

impl LeakFigures {
    /// A table in Markdown.
    pub fn text(&self) -> String {
        let mut text = String::from(
            "| model | seen | samples | noise | readings | recovered | guessed | misfit |\n|---|---|---:|---:|---:|---:|---:|---:|\n",
        );
        for row in &self.rows {
            let _infallible = writeln!(text, "{}", row.text());
        }
        text
    }
}

impl LeakRow {
    /// Its line of the table.
    pub fn text(&self) -> String {
        format!(
            "| {} | {} | {} | {} | {:.0} | {:.0} % | {:.0} % | {:.0e} |",
            self.model.name(),
            self.seen.name(),
            self.samples,
            self.noise,
            self.readings,
            100.0 * self.recovered,
            100.0 * self.guessed,
            self.misfit
        )
    }
}
