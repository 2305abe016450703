//! ζ: the quality of each node's data.

use rand::seq::SliceRandom;

use super::{Corruption, QualitySpread, ScenarioConfig, designated};
use crate::data::partition::Partition;
use crate::data::random::{RandomPurpose, generator};
use crate::data::{AsPublished, SamplePool, SampleTargets};

/// Classes that the worst node sees.
const CLASSES_MIN: u32 = 2;

/// ζ by node.
pub(super) fn zetas(
    pool: &SamplePool,
    config: &ScenarioConfig,
    measured: &Partition,
    classes: Option<&[Vec<u32>]>,
) -> Vec<f64> {
    let nodes = config.nodes;
    match config.corruption {
        Corruption::None | Corruption::FewClasses => vec![0.0; nodes],
        // The published code takes the share itself, and less is worse.
        Corruption::Quantity => {
            let all = measured.all(1).len() as f64;
            (0..nodes).map(|node| -(measured.of(node, 1).len() as f64) / all).collect()
        }
        Corruption::Heterogeneity => {
            let count = f64::from(class_count(pool));
            classes.unwrap_or_default().iter().map(|classes| 1.0 - classes.len() as f64 / count).collect()
        }
        Corruption::NonStationary => {
            let mut zetas = ladder(config);
            // Where their noise ends up.
            zetas[0] = config.level;
            if nodes > 1 {
                zetas[nodes - 1] = 0.0;
            }
            zetas
        }
        Corruption::FeatureNoise
        | Corruption::LabelNoise
        | Corruption::MissingValues
        | Corruption::Unstable
        | Corruption::StrategicRandom
        | Corruption::StrategicPoisson
        | Corruption::ShiftedClock
        | Corruption::StuckMeter
        | Corruption::MadeUp => ladder(config),
    }
}

/// ζ by node, with which a control at level 0 is compared: that of the default level.
pub(super) fn nominal_zetas(pool: &SamplePool, config: &ScenarioConfig, measured: &Partition) -> Vec<f64> {
    let nominal = ScenarioConfig { level: config.corruption.level_default(), ..*config };
    let classes = classes(pool, &nominal);
    match config.corruption {
        Corruption::Quantity => {
            zetas(pool, &nominal, &Partition::new(pool, &nominal.partition()), classes.as_deref())
        }
        _ => zetas(pool, &nominal, measured, classes.as_deref()),
    }
}

/// Evenly from 0 to the level in the paper; the published code stops one step short of it. Of designated nodes, the level.
fn ladder(config: &ScenarioConfig) -> Vec<f64> {
    if config.spread == QualitySpread::Designated {
        let good = config.nodes - designated(config.nodes);
        return (0..config.nodes).map(|node| if node < good { 0.0 } else { config.level }).collect();
    }
    let steps = match config.as_published {
        AsPublished::Paper => config.nodes.saturating_sub(1).max(1),
        AsPublished::Code => config.nodes,
    };
    (0..config.nodes).map(|node| config.level * node as f64 / steps as f64).collect()
}

/// The classes each node sees: all of them at node 0, falling evenly to [`CLASSES_MIN`] at the last if the level is 1, and
/// less far if it is lower. Where all see equally few, a share of them as large as the level.
pub(super) fn classes(pool: &SamplePool, config: &ScenarioConfig) -> Option<Vec<Vec<u32>>> {
    if !config.corruption.needs_classes() {
        return None;
    }
    let count = class_count(pool);
    let few = ((config.level * f64::from(count)).round() as u32).clamp(1, count.max(1));
    let fewest = CLASSES_MIN.min(count);
    let span = f64::from(count - fewest) * config.level;
    let last = config.nodes.saturating_sub(1).max(1) as f64;
    let of = |node: usize| {
        let seen = match config.corruption {
            Corruption::FewClasses => few,
            _ => count - (span * node as f64 / last).round() as u32,
        };
        let mut classes: Vec<u32> = (0..count).collect();
        // The published code always takes the first ones; then only the best node would see the last.
        if config.as_published == AsPublished::Paper {
            classes.shuffle(&mut generator(config.seed, RandomPurpose::Classes, node, 0));
        }
        classes.truncate(seen as usize);
        classes.sort_unstable();
        classes
    };
    Some((0..config.nodes).map(of).collect())
}

fn class_count(pool: &SamplePool) -> u32 {
    match &pool.targets {
        SampleTargets::Classes { count, .. } => *count,
        SampleTargets::Values { .. } => 0,
    }
}
