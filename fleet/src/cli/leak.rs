//! `evenhand-fleet leak`.

use std::io::{self, Write};
use std::path::PathBuf;

use evenhand_node::reading::{InputBatch, Reading};
use evenhand_node::source::Source;
use evenhand_node::source::household::{Household, HouseholdConfig};
use evenhand_program::exit::Exit;
use evenhand_protocol::codec::CodecKind;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::FleetError;
use crate::data::{self, Dataset};
use crate::leak::{self, AttackEffort, AttackedModel, LeakSettings, SearchEffort, SeenKind};

/// Examples of use.
pub(super) const HELP: &str = "\
Examples:
  evenhand-fleet leak                                what a node sends by default, synthetic households
  evenhand-fleet leak --data DIR                     the same, real meters
  evenhand-fleet leak --seen gradient --samples 1,4,8,32,96 --noise 0,0.01
  evenhand-fleet leak --model load-quantiles --seen local-steps --samples 8 --codec int8";

/// Households that are attacked or known, at most.
const HOUSEHOLDS: usize = 50;
/// Readings of a synthetic household: sixty days of half hours.
const READINGS: usize = 60 * 48;
/// Seconds of a step.
const STEP_S: u32 = 1800;

/// Flags of `evenhand-fleet leak`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LeakArgs {
    /// Folder of data sets, for the London meters; without it, and without EVENHAND_DATA, synthetic households
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Synthetic households even where there are data sets
    #[arg(long)]
    synthetic: bool,
    /// Models [default: all that are shipped for loads]
    #[arg(long, value_enum, value_delimiter = ',')]
    model: Vec<AttackedModel>,
    /// What is seen [default: what a node sends by default, of the fewest readings it may be of]
    #[arg(long, value_enum, value_delimiter = ',')]
    seen: Vec<SeenKind>,
    /// Samples of a batch, with --seen
    #[arg(long, value_delimiter = ',', default_value = "1,4,8,32,96", requires = "seen")]
    samples: Vec<usize>,
    /// The node's privacy.noise
    #[arg(long, value_delimiter = ',', default_value = "0")]
    noise: Vec<f64>,
    /// The node's privacy.clip
    #[arg(long, default_value_t = 1.0)]
    clip: f64,
    /// The codec of updates
    #[arg(long, default_value = "f32", value_parser = parse_codec)]
    codec: CodecKind,
    /// Households attacked
    #[arg(long, default_value_t = 4, value_name = "N")]
    victims: usize,
    /// Starts of the search
    #[arg(long, default_value_t = 3, value_name = "N")]
    starts: usize,
    /// Gauss-Newton steps from each start
    #[arg(long, default_value_t = 40, value_name = "N")]
    steps: usize,
    /// Conjugate gradients in a step of many unknowns
    #[arg(long, default_value_t = 30, value_name = "N")]
    inner: usize,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object on stdout instead of the table
    #[arg(long)]
    json: bool,
}

fn parse_codec(text: &str) -> Result<CodecKind, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// Attacks updates and prints what was recovered.
pub(super) fn run(args: &LeakArgs) -> Result<Exit, FleetError> {
    let folder = data::folder(args.data.clone()).filter(|_| !args.synthetic);
    let mut households = match &folder {
        Some(folder) => recorded(folder)?,
        None => (0..HOUSEHOLDS as u64).map(synthetic).collect(),
    };
    households.shuffle(&mut ChaCha8Rng::seed_from_u64(args.seed));
    households.truncate(HOUSEHOLDS);
    let models = match &args.model[..] {
        [] => {
            vec![AttackedModel::ElectricityRnn, AttackedModel::LoadQuantiles, AttackedModel::ElectricityMlp]
        }
        some => some.to_vec(),
    };
    let settings = LeakSettings {
        models,
        seen: (!args.seen.is_empty()).then(|| args.seen.clone()),
        samples: args.samples.clone(),
        noise: args.noise.clone(),
        clip: args.clip,
        codec: args.codec,
        victims: args.victims,
        effort: AttackEffort {
            starts: args.starts,
            each: SearchEffort { steps: args.steps, inner: args.inner },
        },
        seed: args.seed,
    };
    let figures = leak::run(&settings, &households, &mut |row| eprintln!("{}", row.text()))?;
    let text = match args.json {
        true => serde_json::to_string(&figures).map_err(|error| FleetError::Output(error.into()))? + "\n",
        false => figures.text(),
    };
    io::stdout().lock().write_all(text.as_bytes()).map_err(FleetError::Output)?;
    Ok(Exit::Ok)
}

/// The last readings of each of the London meters that has so many without a gap.
fn recorded(folder: &std::path::Path) -> Result<Vec<Vec<Reading>>, FleetError> {
    let all = data::recorded_series(Dataset::Meters, Some(folder))?;
    let newest = |series: data::RecordedSeries| {
        let last = series.readings.windows(READINGS).rev().step_by(48).find(|days| {
            let span = days[READINGS - 1].time_ms - days[0].time_ms;
            span == (READINGS as i64 - 1) * i64::from(STEP_S) * 1000
        });
        last.map(<[Reading]>::to_vec)
    };
    Ok(all.into_iter().filter_map(newest).collect())
}

fn synthetic(seed: u64) -> Vec<Reading> {
    let mut household =
        Household::new(HouseholdConfig { seed: seed + 1, step_s: STEP_S, ..Default::default() });
    match household.read(READINGS) {
        Ok(InputBatch::Readings(readings)) => readings,
        Ok(InputBatch::Rows(_)) | Err(_) => Vec::new(),
    }
}
