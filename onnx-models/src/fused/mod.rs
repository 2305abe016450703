//! Kernels with hand-written derivatives for the flex backend.
//!
//! burn's autodiff composes derivatives of elementary operations, which for convolutions and recurrent layers costs
//! several times what the mathematics needs. These operations take their place on the same tape. The other backend runs
//! the composed ones, so each checks the other.

mod fused_activation;
mod fused_conv;
mod fused_linear;
mod fused_pool;
mod fused_recurrent;
mod lanes;
mod matrix_product;
mod memory_layout;
mod segment_product;

use std::fmt::Debug;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::NoCheckpointing;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_backend::tensor::FloatTensor;
use burn_flex::{Flex, FlexTensor};

use crate::engine::Engine;
use crate::fused::fused_activation::{FusedActivation, FusedLogSoftmax};
use crate::fused::fused_conv::FusedConv;
use crate::fused::fused_linear::FusedLinear;
use crate::fused::fused_pool::FusedMaxPool;
use crate::fused::fused_recurrent::FusedRecurrent;
use crate::kernel::Kernel;
use crate::kernel::composed::composed;

type TrackedTensor = FloatTensor<Autodiff<Flex>>;

/// The operands from which the derivatives of a product with a weight are computed.
type InputAndWeight = [FlexTensor; 2];

/// An operation of `N` tensors and its derivative.
trait FusedKernel<const N: usize>: Debug + Clone + Send + 'static {
    /// Values that the derivative needs.
    type Saved: Debug + Clone + Send + 'static;

    fn forward(&self, inputs: [FlexTensor; N]) -> (FlexTensor, Self::Saved);

    /// The gradients of the inputs that are wanted, given that of the output.
    fn backward(
        &self,
        saved: Self::Saved,
        gradient: FlexTensor,
        wanted: [bool; N],
    ) -> [Option<FlexTensor>; N];
}

#[derive(Debug)]
struct BackwardStep<F>(F);

impl<F: FusedKernel<N>, const N: usize> Backward<Flex, N> for BackwardStep<F> {
    type State = F::Saved;

    fn backward(self, ops: Ops<F::Saved, N>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<Flex>(&ops.node);
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let found = self.0.backward(ops.state, gradient, wanted);
        for (parent, gradient) in ops.parents.into_iter().zip(found) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                gradients.register::<Flex>(parent.id, gradient);
            }
        }
    }
}

fn track<F: FusedKernel<N>, const N: usize>(op: F, inputs: Vec<TrackedTensor>) -> TrackedTensor {
    let inputs: [TrackedTensor; N] =
        inputs.try_into().unwrap_or_else(|_| unreachable!("a kernel is emitted with its operands"));
    let guards = inputs.each_ref().map(|input| input.node());
    let primitives = inputs.map(|input| input.into_primitive());
    match BackwardStep(op.clone()).prepare::<NoCheckpointing>(guards).compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            let (output, saved) = op.forward(primitives);
            prep.finish(saved, output)
        }
        OpsKind::UnTracked(prep) => prep.finish(op.forward(primitives).0),
    }
}

fn run<F: FusedKernel<N>, const N: usize>(op: F, inputs: Vec<FlexTensor>) -> FlexTensor {
    let inputs: [FlexTensor; N] =
        inputs.try_into().unwrap_or_else(|_| unreachable!("a kernel is emitted with its operands"));
    op.forward(inputs).0
}

/// Calls `$with` on the fused operation of a kernel, or composes it where there is none.
macro_rules! dispatch {
    ($kernel:expr, $operands:expr, $with:ident, $backend:ty) => {{
        let operands = $operands;
        match $kernel {
            Kernel::Unary(op) => match FusedActivation::of(*op) {
                Some(op) => $with(op, operands),
                None => composed::<$backend>($kernel, operands),
            },
            Kernel::LogSoftmax(dim) => $with(FusedLogSoftmax { dim: *dim }, operands),
            Kernel::Linear { transposed } => $with(FusedLinear { transposed: *transposed }, operands),
            Kernel::Conv(conv) if operands.len() == 3 => $with::<_, 3>(FusedConv(conv.clone()), operands),
            Kernel::Conv(conv) => $with::<_, 2>(FusedConv(conv.clone()), operands),
            Kernel::MaxPool(window) => $with(FusedMaxPool(window.clone()), operands),
            Kernel::Recurrent(cell) if operands.len() == 6 => $with::<_, 6>(FusedRecurrent(*cell), operands),
            Kernel::Recurrent(cell) => $with::<_, 5>(FusedRecurrent(*cell), operands),
            _ => composed::<$backend>($kernel, operands),
        }
    }};
}

#[allow(private_interfaces)]
impl Engine for Flex {
    const BACKEND: &'static str = "burn-flex";

    fn run(kernel: &Kernel, operands: Vec<FlexTensor>) -> FlexTensor {
        dispatch!(kernel, operands, run, Flex)
    }

    fn track(kernel: &Kernel, operands: Vec<TrackedTensor>) -> TrackedTensor {
        dispatch!(kernel, operands, track, Autodiff<Flex>)
    }
}
