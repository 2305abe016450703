//! The processors that build the Gram matrix.

use serde::{Deserialize, Serialize};

/// A processor that multiplies updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// The processor's cores.
    #[default]
    Cpu,
    /// The first GPU that Vulkan finds; needs the cargo feature `gpu`.
    Gpu,
}
