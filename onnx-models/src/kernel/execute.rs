//! Execution of a plan on a backend, and conversion of values to and from its tensors.

use burn_backend::tensor::{Device, FloatTensor, IntTensor};
use burn_backend::{Backend, Shape, TensorData, TensorMetadata};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use crate::kernel::Kernel;
use crate::plan::ExecutionPlan;

/// A plan with its fixed tensors on the backend.
pub struct PreparedPlan<B: Backend> {
    pub(crate) plan: ExecutionPlan,
    pub(crate) constants: Vec<FloatTensor<B>>,
}

impl<B: Backend> PreparedPlan<B> {
    pub(crate) fn new(plan: ExecutionPlan, device: &Device<B>) -> Self {
        let constants = plan.constants.iter();
        let constants = constants.map(|c| tensor::<B>(c.data.to_vec(), &c.shape, device)).collect();
        PreparedPlan { plan, constants }
    }
}

/// Runs a plan with `run` for each kernel. `dropout` draws the masks while training, and is none otherwise.
pub(crate) fn execute<B: Backend>(
    plan: &ExecutionPlan,
    inputs: Vec<FloatTensor<B>>,
    parameters: &[FloatTensor<B>],
    constants: &[FloatTensor<B>],
    mut dropout: Option<&mut ChaCha8Rng>,
    run: impl Fn(&Kernel, Vec<FloatTensor<B>>) -> FloatTensor<B>,
) -> Vec<FloatTensor<B>> {
    let mut slots: Vec<Option<FloatTensor<B>>> = vec![None; plan.slots];
    for ((slot, _), tensor) in plan.inputs.iter().zip(inputs) {
        slots[*slot] = Some(tensor);
    }
    for (slot, tensor) in plan.parameters.iter().zip(parameters) {
        slots[*slot] = Some(tensor.clone());
    }
    for (constant, tensor) in plan.constants.iter().zip(constants) {
        slots[constant.slot] = Some(tensor.clone());
    }
    for step in &plan.steps {
        let operands = step.inputs.iter().zip(&step.last_use).map(|(&slot, &last)| {
            let tensor = if last { slots[slot].take() } else { slots[slot].clone() };
            tensor.expect("a plan uses a value only after the step that computes it")
        });
        let mut operands: Vec<FloatTensor<B>> = operands.collect();
        slots[step.output] = Some(match (&step.kernel, &mut dropout) {
            (Kernel::Dropout(_), None) => operands.swap_remove(0),
            (Kernel::Dropout(ratio), Some(random)) => drop_some::<B>(operands.swap_remove(0), *ratio, random),
            (kernel, _) => run(kernel, operands),
        });
    }
    let output = |(slot, _): &(usize, _)| slots[*slot].clone().expect("every output of a plan is computed");
    plan.outputs.iter().map(output).collect()
}

/// A tensor on the backend.
pub(crate) fn tensor<B: Backend>(data: Vec<f32>, shape: &[usize], device: &Device<B>) -> FloatTensor<B> {
    B::float_from_data(TensorData::new(data, self::shape(shape)), device)
}

/// Indices on the backend.
pub(crate) fn indices<B: Backend>(
    data: impl Iterator<Item = i64>,
    shape: &[usize],
    device: &Device<B>,
) -> IntTensor<B> {
    let data: Vec<i64> = data.collect();
    B::int_from_data(TensorData::new(data, Shape::from(shape.to_vec())), device)
}

/// The values of a tensor.
pub(crate) fn values<B: Backend>(tensor: FloatTensor<B>) -> Vec<f32> {
    let data =
        burn_backend::read_sync(B::float_into_data(tensor)).expect("CPU backends return their data at once");
    let (bytes, _, _) = data.into_parts();
    bytes
        .try_into_vec::<f32>()
        .unwrap_or_else(|bytes| bytes.as_chunks::<4>().0.iter().map(|w| f32::from_ne_bytes(*w)).collect())
}

/// The backend's shape: scalars are held as vectors of one, because burn's reductions expect a dimension.
pub(super) fn shape(dims: &[usize]) -> Shape {
    Shape::from(if dims.is_empty() { vec![1] } else { dims.to_vec() })
}

/// Values dropped at random, the others scaled up to keep the mean.
fn drop_some<B: Backend>(x: FloatTensor<B>, ratio: f32, random: &mut ChaCha8Rng) -> FloatTensor<B> {
    let dims: Vec<usize> = x.shape().to_vec();
    let keep = 1.0 / (1.0 - ratio);
    let limit = (f64::from(ratio) * f64::from(u32::MAX)) as u32;
    let mask = (0..dims.iter().product()).map(|_| if random.next_u32() < limit { 0.0 } else { keep });
    let mask = tensor::<B>(mask.collect(), &dims, &x.device());
    B::float_mul(x, mask)
}
