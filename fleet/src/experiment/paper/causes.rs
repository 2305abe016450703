//! Causes of numbers that are worse than the published ones.

use super::results::CellResult;
use crate::data::{AsPublished, Dataset};
use crate::experiment::measure::Measure;
use crate::experiment::variant::Variant;

/// The cause of a worse number: what differs, not a proof.
pub(super) fn cause(result: &CellResult) -> &'static str {
    let Ok(planned) = &result.plan else { return "not run" };
    let (setup, measure) = (&planned.setup, planned.measure);
    let is_plain = setup.as_published == AsPublished::Paper;
    let is_rho = matches!(measure, Measure::RhoLoss | Measure::RhoScore | Measure::RhoStaleness);
    if setup.variant == Variant::Gog && is_rho {
        return "draws: published errors of 0.002 to 0.05 say that trials shared theirs, ours do not";
    }
    match (setup.dataset, measure) {
        (_, Measure::SecondsFairness | Measure::FairnessShare) => "another machine and implementation",
        (Dataset::Hft, _) => "a substitute of the data",
        (Dataset::Pathmnist, _) => "718 images of 89,996: seen many times",
        (_, Measure::OnlineMean | Measure::OnlineMin | Measure::OnlineMax | Measure::FinalMax)
            if is_plain =>
        {
            "plain gradients at the published rate hardly learn; the code has momentum or Adam"
        }
        (_, Measure::RhoLoss | Measure::RhoScore | Measure::RhoStaleness) if is_plain => {
            "equal batches and plain gradients; the code's split gives noisier nodes smaller batches"
        }
        (_, Measure::RhoLoss | Measure::RhoScore | Measure::RhoStaleness) => {
            "noise and data differ by trial, in the code only the initial model"
        }
        (_, Measure::LossStd | Measure::OnlineStd | Measure::FinalStd) => {
            "models of different rounds differ more where learning is faster"
        }
        (Dataset::Cifar10, _) => "one of five files, seen several times",
        _ => "not known",
    }
}
