//! Personal parameters: trained where the model is used, and never sent.

use std::collections::BTreeMap;

/// The metadata key that names the personal parameters, comma-separated.
///
/// A model's parameters are then of two kinds. The shared ones are [`Model::parameters`](crate::Model::parameters): what
/// is exchanged, exported and counted by [`Model::dim`](crate::Model::dim). The personal ones are a vector of their own,
/// [`Model::initial_personal`](crate::Model::initial_personal) at first, which
/// [`Trainer::personal_epochs`](crate::Trainer::personal_epochs) fits with the shared ones held fixed. No function takes
/// them from a trainer or predictor into an update or an exported file.
pub const PERSONAL: &str = "evenhand.personal";

/// The two kinds of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelPart {
    /// Exchanged with others.
    Shared,
    /// Stays here.
    Personal,
}

/// The names in the metadata.
pub(crate) fn names(metadata: &BTreeMap<String, String>) -> Vec<String> {
    let listed = metadata.get(PERSONAL).map_or("", String::as_str);
    listed.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
