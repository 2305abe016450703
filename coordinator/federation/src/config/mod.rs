//! Settings of a federation: as written ([`FederationConfig`]), and validated ([`Rules`]).
//!
//! One file a section, with its type, defaults, checks and tests.

mod admission;
mod check;
mod continuous;
mod contribution;
mod exploiting;
mod exploring;
mod general;
mod rules;
mod training;

use evenhand_fairness::ContributionConfig;
use serde::{Deserialize, Serialize};

pub use self::admission::{AdmissionConfig, NormPolicy};
pub use self::check::RuleError;
pub use self::continuous::ContinuousConfig;
pub use self::exploiting::ExploitingConfig;
pub use self::exploring::{ExploringConfig, StopRuleKind};
pub use self::general::{GeneralConfig, Policy};
pub use self::rules::Rules;
pub use self::training::{OptimiserKind, TrainingConfig};

/// A federation's settings as somebody wrote them; [`Rules::new`] validates them.
///
/// The same sections and names as in the coordinator's TOML file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FederationConfig {
    /// Name, size and pace.
    pub federation: GeneralConfig,
    /// The nodes' work.
    pub training: TrainingConfig,
    /// Measurement and draws of the policy "continuous".
    pub continuous: ContinuousConfig,
    /// The measurement of contributions under the policy "paper".
    pub contribution: ContributionConfig,
    /// The stop rule.
    pub exploring: ExploringConfig,
    /// The draws.
    pub exploiting: ExploitingConfig,
    /// Limits on nodes and updates.
    pub admission: AdmissionConfig,
}
