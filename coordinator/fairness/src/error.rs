//! Errors.

/// An input that has no result; the message names the field and, where there is one, the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FairnessError {
    /// An input without values.
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
        /// The length of the input that it belongs to.
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
        /// The number of players.
        players: usize,
        /// The number that can be enumerated.
        most: usize,
    },
    /// A state that another utility saved.
    #[error("the state is not one of the configured utility")]
    OtherUtility,
    /// No temperature gives the wanted staleness.
    #[error("{demand} is out of reach: {reachable}")]
    Unreachable {
        /// The demand.
        demand: String,
        /// The nearest that is possible.
        reachable: String,
    },
    /// The GPU cannot be used.
    #[error("device = gpu: {0}")]
    Gpu(String),
}
