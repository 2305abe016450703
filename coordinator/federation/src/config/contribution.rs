//! `[contribution]`: checks of the measurement of contributions.

use evenhand_fairness::ContributionConfig;

use super::check::RuleError;

/// Checks the measurement of as many nodes at once as `field` admits.
pub(super) fn check(
    contribution: &ContributionConfig,
    field: &'static str,
    nodes: u32,
) -> Result<(), RuleError> {
    contribution.check().map_err(RuleError::Contribution)?;
    match contribution.nodes_max() {
        Some(most) if nodes as usize > most => Err(RuleError::TooManyForExact { field, nodes, most }),
        _ => Ok(()),
    }
}
