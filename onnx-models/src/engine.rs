//! Backends that run kernels: composed of burn's operations, or fused where the backend implements them.

use burn_autodiff::Autodiff;
use burn_backend::Backend;
use burn_backend::tensor::FloatTensor;

use crate::kernel::Kernel;
use crate::kernel::composed::composed;

/// A backend that models can be trained on.
#[allow(private_interfaces)]
pub trait Engine: Backend {
    /// A name for logs and reports.
    const BACKEND: &'static str;

    /// Runs a kernel.
    #[doc(hidden)]
    fn run(kernel: &Kernel, operands: Vec<FloatTensor<Self>>) -> FloatTensor<Self> {
        composed::<Self>(kernel, operands)
    }

    /// Runs a kernel and records its derivative on the tape.
    #[doc(hidden)]
    fn track(kernel: &Kernel, operands: Vec<FloatTensor<Autodiff<Self>>>) -> FloatTensor<Autodiff<Self>> {
        composed::<Autodiff<Self>>(kernel, operands)
    }
}

#[cfg(feature = "ndarray")]
impl Engine for crate::backend::NdArray {
    const BACKEND: &'static str = "burn-ndarray";
}
