//! The data sets that a command can use.

use super::FleetError;
use super::trial_args::TrialArgs;
use crate::data::{self, DataError, DataRequest, Dataset, SamplePool};
use crate::experiment::setup::Setup;
use crate::experiment::variant::Variant;
use crate::names::value_name;
use crate::scenario::Corruption;

/// The data sets whose files are there, and a sentence for each other one. What is asked for by name must be there.
pub(super) fn present(
    asked: &[Dataset],
    trials: &TrialArgs,
) -> Result<(Vec<Dataset>, Vec<String>), FleetError> {
    if !asked.is_empty() {
        return Ok((once(asked), Vec::new()));
    }
    if trials.no_run {
        return Ok((Dataset::published().collect(), Vec::new()));
    }
    let folder = data::folder(trials.data.clone());
    let (mut there, mut left_out) = (Vec::new(), Vec::new());
    for dataset in Dataset::published().filter(|one| *one != Dataset::Synthetic) {
        let (as_published, seed) = (trials.as_published, trials.seed);
        let wanted = Setup::published(dataset, Corruption::FeatureNoise, Variant::Paper, as_published, seed);
        let least = DataRequest { as_published, seed, samples_max: 1, owners_max: wanted.nodes };
        match data::load(dataset, folder.as_deref(), &least) {
            Ok(SamplePool { owners: Some(owners), .. }) if owners.len() < wanted.nodes => {
                let (found, nodes) = (owners.len(), wanted.nodes);
                left_out.push(format!(
                    "{}, since only {found} of {nodes} households have enough readings",
                    value_name(&dataset)
                ));
            }
            Ok(_) => there.push(dataset),
            Err(error @ (DataError::NoFolder { .. } | DataError::Missing { .. })) => {
                left_out.push(error.to_string())
            }
            Err(error) => return Err(error.into()),
        }
    }
    if there.is_empty() {
        left_out.push("no data set is there, so synthetic data are used instead".into());
        there.push(Dataset::Synthetic);
    }
    Ok((there, left_out))
}

/// Each one once, in the order given.
pub(super) fn once<T: Clone + PartialEq>(given: &[T]) -> Vec<T> {
    let mut unique: Vec<T> = Vec::new();
    for one in given {
        if !unique.contains(one) {
            unique.push(one.clone());
        }
    }
    unique
}
