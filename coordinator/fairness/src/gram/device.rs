//! Where the Gram matrix is built.

use serde::{Deserialize, Serialize};

/// What multiplies the updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// The processor's cores.
    #[default]
    Cpu,
    /// The first GPU that Vulkan finds; needs the cargo feature `gpu`.
    Gpu,
}
