//! Inference through tract.

use tract_onnx::model::{Onnx, ParsingContext};
use tract_onnx::ops::rec::common::CommonRec;
use tract_onnx::ops::rec::rnn::RNN;
use tract_onnx::pb;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::{math, nn};
use tract_onnx::tract_hir::infer::InferenceOp;
use tract_onnx::tract_hir::internal::{TypedOp, expand};

use crate::error::{ModelError, Result};
use crate::export;
use crate::model::Model;

/// Optimised models kept, one for each input shape seen lately.
const SHAPES_MAX: usize = 8;

/// Runs a model with the weights it was last given.
pub struct Predictor {
    model: Model,
    weights: Vec<f32>,
    ready: Vec<(Vec<usize>, Arc<TypedRunnableModel>)>,
}

impl Predictor {
    /// A predictor with these weights.
    pub fn new(model: &Model, weights: &[f32]) -> Result<Self> {
        let mut predictor = Predictor { model: model.clone(), weights: vec![], ready: vec![] };
        predictor.set_weights(weights)?;
        Ok(predictor)
    }

    /// Predicts with other weights from now on.
    pub fn set_weights(&mut self, weights: &[f32]) -> Result<()> {
        self.model.inner.check_weights(weights)?;
        self.weights = weights.to_vec();
        self.ready.clear();
        Ok(())
    }

    /// The first output for these inputs.
    pub fn predict(&mut self, inputs: &[f32], shape: &[usize]) -> Result<Vec<f32>> {
        let shapes = self.model.inner.input_shapes(shape, inputs.len())?;
        let failed = |error: TractError| ModelError::Inference(format!("{error:#}"));
        let ready = match self.ready.iter().find(|(known, _)| known == shape) {
            Some((_, ready)) => ready.clone(),
            None => {
                self.model.inner.plan(&shapes, 1)?;
                let ready = self.build(&shapes).map_err(failed)?;
                if self.ready.len() == SHAPES_MAX {
                    self.ready.remove(0);
                }
                self.ready.push((shape.to_vec(), ready.clone()));
                ready
            }
        };
        let mut tensors: TVec<TValue> = tvec!(Tensor::from_shape(shape, inputs).map_err(failed)?.into());
        for shape in &shapes[1..] {
            tensors.push(Tensor::zero::<f32>(shape).map_err(failed)?.into());
        }
        let outputs = ready.run(tensors).map_err(failed)?;
        let view = outputs[0].to_plain_array_view::<f32>().map_err(failed)?;
        Ok(view.iter().copied().collect())
    }

    fn build(&self, shapes: &[Vec<usize>]) -> TractResult<Arc<TypedRunnableModel>> {
        let inner = &self.model.inner;
        let file = export::fill(&inner.stripped, inner.parameters(), &self.weights);
        let mut model = onnx().model_for_proto_model(&file)?;
        for (index, shape) in shapes.iter().enumerate() {
            model.set_input_fact(index, f32::fact(shape).into())?;
        }
        model.into_optimized()?.into_runnable()
    }
}

/// tract's operators, with one corrected: its RNN takes every activation for tanh.
fn onnx() -> Onnx {
    let mut onnx = tract_onnx::onnx();
    onnx.op_register.insert("RNN", rnn);
    onnx
}

fn rnn(_: &ParsingContext<'_>, node: &pb::NodeProto) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let activations = node.attribute.iter().find(|attribute| attribute.name == "activations");
    let activation = activations.and_then(|attribute| attribute.strings.first()).map(Vec::as_slice);
    let fore: Box<dyn TypedOp> = match activation {
        Some(b"Relu") => Box::new(nn::leaky_relu(0.0)),
        Some(b"Sigmoid") => Box::new(nn::sigmoid()),
        _ => Box::new(math::tanh()),
    };
    let cell = RNN { fore: fore.clone(), back: fore };
    Ok((expand(CommonRec::from_node_and_options(node, 3, 0, Box::new(cell))?), vec![]))
}
