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

    /// The first output for these inputs. Hidden states that the model takes as further inputs are zero.
    pub fn predict(&mut self, inputs: &[f32], shape: &[usize]) -> Result<Vec<f32>> {
        self.predict_from(inputs, shape, &mut vec![])
    }

    /// The first output for these inputs, going on from hidden states: they are the model's further inputs, empty for
    /// zeros, and afterwards its further outputs, so that a stream is predicted piece by piece.
    pub fn predict_from(
        &mut self,
        inputs: &[f32],
        shape: &[usize],
        states: &mut Vec<Vec<f32>>,
    ) -> Result<Vec<f32>> {
        let shapes = self.model.inner.input_shapes(shape, inputs.len())?;
        let failed = |error: TractError| ModelError::Inference(format!("{error:#}"));
        if states.is_empty() {
            states.extend(shapes[1..].iter().map(|shape| vec![0.0; shape.iter().product()]));
        }
        let fit = states.len() + 1 == shapes.len()
            && states
                .iter()
                .zip(&shapes[1..])
                .all(|(state, shape)| state.len() == shape.iter().product::<usize>());
        if !fit {
            let sizes = states.iter().map(Vec::len).collect();
            return Err(ModelError::States { found: sizes, expected: shapes[1..].to_vec() });
        }
        let ready = self.ready(shape, &shapes)?;
        let given = std::iter::once(inputs).chain(states.iter().map(Vec::as_slice));
        let tensors = given.zip(&shapes).map(|(data, shape)| Ok(Tensor::from_shape(shape, data)?.into()));
        let outputs =
            ready.run(tensors.collect::<TractResult<TVec<TValue>>>().map_err(failed)?).map_err(failed)?;
        let mut values = outputs.iter().map(|output| {
            let view = output.to_plain_array_view::<f32>().map_err(failed)?;
            Ok(view.iter().copied().collect::<Vec<f32>>())
        });
        let first = values.next().unwrap_or_else(|| Ok(vec![]))?;
        let after = values.collect::<Result<Vec<_>>>()?;
        if after.len() == states.len() {
            *states = after;
        }
        Ok(first)
    }

    /// The model optimised for inputs of this shape.
    fn ready(&mut self, shape: &[usize], shapes: &[Vec<usize>]) -> Result<Arc<TypedRunnableModel>> {
        if let Some((_, ready)) = self.ready.iter().find(|(known, _)| known == shape) {
            return Ok(ready.clone());
        }
        // Whatever the trainer refuses never reaches tract.
        let outputs = self.outputs();
        self.model.inner.plan(shapes, outputs)?;
        let ready =
            self.build(shapes, outputs).map_err(|error| ModelError::Inference(format!("{error:#}")))?;
        if self.ready.len() == SHAPES_MAX {
            self.ready.remove(0);
        }
        self.ready.push((shape.to_vec(), ready.clone()));
        Ok(ready)
    }

    /// All outputs if they can be the next states, otherwise the first.
    fn outputs(&self) -> usize {
        let graph = &self.model.inner.graph;
        if graph.inputs.len() > 1 && graph.outputs.len() == graph.inputs.len() {
            graph.outputs.len()
        } else {
            1
        }
    }

    fn build(&self, shapes: &[Vec<usize>], outputs: usize) -> TractResult<Arc<TypedRunnableModel>> {
        let inner = &self.model.inner;
        let mut file = export::fill(&inner.stripped, inner.parameters(), &self.weights);
        if let Some(graph) = &mut file.graph {
            graph.output.truncate(outputs);
            // Declared shapes are hints that may be wrong; tract works them out from the input's.
            graph.value_info.clear();
            for node in graph.node.iter_mut().filter(|node| node.op_type == "Dropout") {
                node.input.truncate(1);
                node.output.truncate(1);
            }
        }
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
