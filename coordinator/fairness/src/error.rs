//! What can be wrong with a question put to the fairness core.

/// A question that has no answer; the message names the field and, where there is one, the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FairnessError {
    /// Nothing to share out.
    #[error("{field} is empty")]
    Empty {
        /// The empty input.
        field: &'static str,
    },
    /// Two inputs that belong together differ in length.
    #[error("{field} has {found} values, expected {expected}")]
    Length {
        /// The input, with its index where it has one.
        field: String,
        /// Its length.
        found: usize,
        /// The length of what it belongs to.
        expected: usize,
    },
    /// NaN or an infinity.
    #[error("{field} is not finite")]
    NotFinite {
        /// The input, with its index where it has one.
        field: String,
    },
    /// Values whose squares leave single precision.
    #[error("{field} holds values too large to square in single precision")]
    TooLarge {
        /// The input, with its index.
        field: String,
    },
    /// A number outside its range.
    #[error("{field} = {found} must be {wanted}")]
    OutOfRange {
        /// The input, with its index where it has one.
        field: String,
        /// Its value.
        found: f64,
        /// The range.
        wanted: &'static str,
    },
    /// Enumeration doubles with each node.
    #[error(
        "estimator = exact enumerates 2^{players} coalitions; beyond {most} nodes use stratified or permutation"
    )]
    TooManyPlayers {
        /// How many there are.
        players: usize,
        /// How many there may be.
        most: usize,
    },
    /// A state that another utility saved.
    #[error("the state is not one of the configured utility")]
    OtherUtility,
    /// No temperature gives the wanted staleness.
    #[error("{wish} is out of reach: {reachable}")]
    Unreachable {
        /// What was asked for.
        wish: String,
        /// What can be had.
        reachable: String,
    },
    /// The GPU cannot be used.
    #[error("device = gpu: {0}")]
    Gpu(String),
}
