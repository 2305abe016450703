//! Inference by a backend that also trains: its kernels, without a tape.

use burn_backend::tensor::{Device, FloatTensor};

use crate::engine::Engine;
use crate::error::Result;
use crate::infer::InferenceEngine;
use crate::kernel::execute::{PreparedPlan, execute, tensor, values};
use crate::model::ModelInner;
use crate::order::Parameter;
use crate::plan::ExecutionPlan;

/// Weights are inputs of every plan, so there is nothing to fold and nothing to clear.
#[allow(private_interfaces)]
impl<B: Engine> InferenceEngine for B {
    const NAME: &'static str = B::BACKEND;

    type Weight = FloatTensor<B>;

    type Prepared = PreparedPlan<B>;

    fn weight(parameter: &Parameter, values: &[f32]) -> Result<Self::Weight> {
        Ok(tensor::<B>(values.to_vec(), &parameter.shape, &Device::<B>::default()))
    }

    fn prepare(
        _: &ModelInner,
        plan: ExecutionPlan,
        _: &[Self::Weight],
        _folds_weights: bool,
    ) -> Result<Self::Prepared> {
        Ok(PreparedPlan::new(plan, &Device::<B>::default()))
    }

    fn clear(_: &mut Self::Prepared) -> bool {
        true
    }

    fn run(
        prepared: &mut Self::Prepared,
        inputs: &[(&[f32], &[usize])],
        weights: &[Self::Weight],
    ) -> Result<Vec<Vec<f32>>> {
        let device = Device::<B>::default();
        let inputs = inputs.iter().map(|(data, shape)| tensor::<B>(data.to_vec(), shape, &device)).collect();
        let outputs = execute::<B>(&prepared.plan, inputs, weights, &prepared.constants, None, B::run);
        Ok(outputs.into_iter().map(values::<B>).collect())
    }
}
