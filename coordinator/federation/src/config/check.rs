//! Checks of single values, and the error that names field and remedy.

use evenhand_fairness::FairnessError;

/// The reason why settings are no rules: the field, and the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RuleError {
    /// More draws than nodes.
    #[error(
        "k = {k} exceeds the {nodes} nodes the federation begins with; lower exploiting.k or raise federation.nodes_min"
    )]
    DrawsAboveNodes {
        /// Draws a round.
        k: u32,
        /// Nodes at the beginning.
        nodes: u32,
    },
    /// More nodes tested than there are.
    #[error(
        "tested_nodes = {tested} exceeds the {nodes} nodes the federation begins with; lower exploring.tested_nodes"
    )]
    TestedAboveNodes {
        /// M.
        tested: u32,
        /// Nodes at the beginning.
        nodes: u32,
    },
    /// A window too short for the test.
    #[error(
        "window = {window} must be above tested_nodes = {tested}; raise exploring.window or lower exploring.tested_nodes"
    )]
    WindowWithinTested {
        /// τ.
        window: u32,
        /// M.
        tested: u32,
    },
    /// A promise that equal odds do not keep.
    #[error(
        "worst_wait = {worst_wait} rounds cannot be promised to {nodes} nodes with k = {k}: equal odds are a wait of nodes/k; \
         raise exploiting.k or continuous.worst_wait, or lower federation.nodes_max"
    )]
    WaitOutOfReach {
        /// The wish.
        worst_wait: f64,
        /// Nodes that may enrol.
        nodes: u32,
        /// Draws a round.
        k: u32,
    },
    /// Enumeration of too many coalitions.
    #[error(
        "estimator = exact is for at most {most} nodes, and {field} = {nodes}; lower it, or set contribution.estimator = \"permutation\""
    )]
    TooManyForExact {
        /// The field that admits so many.
        field: &'static str,
        /// Nodes in a round.
        nodes: u32,
        /// As many as can be enumerated.
        most: usize,
    },
    /// A value of `[contribution]` outside its range.
    #[error("contribution.{0}")]
    Contribution(FairnessError),
    /// A number outside its range.
    #[error("{field} = {found} must be {wanted}")]
    Range {
        /// Section and name.
        field: &'static str,
        /// The value.
        found: f64,
        /// The range.
        wanted: &'static str,
    },
    /// A setting that cannot change any more.
    #[error(
        "[{section}] differs from what the federation was founded with; restore it, or begin a new federation in another state.folder"
    )]
    Fixed {
        /// The section.
        section: &'static str,
    },
    /// Epochs have a momentum of their own.
    #[error(
        "training.optimiser = \"{optimiser}\" is for plain gradients; set training.local_epochs = 0, or optimiser = \"none\" and training.local_momentum"
    )]
    OptimiserOfEpochs {
        /// As written.
        optimiser: &'static str,
    },
    /// Not a digest.
    #[error(
        "admission.token_sha256 must be 64 hexadecimal digits; make them with: printf %s TOKEN | sha256sum"
    )]
    TokenDigest,
}

pub(super) fn at_least_one(field: &'static str, found: u32) -> Result<(), RuleError> {
    within(field, found.into(), found > 0, "at least 1")
}

pub(super) fn positive(field: &'static str, found: f64) -> Result<(), RuleError> {
    within(field, found, found.is_finite() && found > 0.0, "a number above 0")
}

pub(super) fn between_zero_and_one(field: &'static str, found: f64) -> Result<(), RuleError> {
    within(field, found, found > 0.0 && found < 1.0, "between 0 and 1")
}

pub(super) fn within(
    field: &'static str,
    found: f64,
    holds: bool,
    wanted: &'static str,
) -> Result<(), RuleError> {
    if holds { Ok(()) } else { Err(RuleError::Range { field, found, wanted }) }
}
