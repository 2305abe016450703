//! Inference through tract.

use tract_onnx::model::{Onnx, ParsingContext};
use tract_onnx::ops::rec::common::CommonRec;
use tract_onnx::ops::rec::rnn::RNN;
use tract_onnx::pb;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::{math, nn};
use tract_onnx::tract_core::plan;
use tract_onnx::tract_hir::infer::InferenceOp;
use tract_onnx::tract_hir::internal::{TypedOp, expand};

use crate::error::{ModelError, Result};
use crate::export;
use crate::model::Model;
use crate::order::Parameter;

/// Optimised models kept, one for each input shape seen lately.
const SHAPES_MAX: usize = 8;

/// Runs a model with the weights it was last given.
///
/// tract plans the model once for each input shape, with the weights as inputs of the plan, and what follows from them
/// alone (packed matrices, for the most part) is kept from the first prediction on. Other weights are thus a copy, and
/// the next prediction packs them.
pub struct Predictor {
    model: Model,
    weights: Vec<TValue>,
    ready: Vec<PreparedModel>,
    folded: bool,
}

/// A model optimised for inputs of one shape.
struct PreparedModel {
    shape: Vec<usize>,
    plan: Arc<TypedRunnableModel>,
    /// Whether the weights are inputs of the plan, after the model's own.
    swappable: bool,
    /// For each node, whether it depends on nothing but weights.
    settled: Vec<bool>,
    /// What these nodes gave with the current weights.
    kept: Vec<Option<TVec<TValue>>>,
}

impl Predictor {
    /// A predictor with these weights.
    pub fn new(model: &Model, weights: &[f32]) -> Result<Self> {
        Predictor::build(model, weights, false)
    }

    /// A predictor that lets tract optimise the model anew for any other weights, folding them into the plan: for many
    /// predictions between few swaps.
    pub fn folding(model: &Model, weights: &[f32]) -> Result<Self> {
        Predictor::build(model, weights, true)
    }

    fn build(model: &Model, weights: &[f32], folded: bool) -> Result<Self> {
        let mut predictor = Predictor { model: model.clone(), weights: vec![], ready: vec![], folded };
        predictor.set_weights(weights)?;
        Ok(predictor)
    }

    /// Predicts with other weights from now on.
    pub fn set_weights(&mut self, weights: &[f32]) -> Result<()> {
        self.model.inner.check_weights(weights)?;
        let tensor = |p: &Parameter| {
            let values = &weights[p.offset..p.offset + p.len()];
            Tensor::from_shape(&p.shape, values).map(TValue::from).map_err(failed)
        };
        self.weights = self.model.parameters().iter().map(tensor).collect::<Result<_>>()?;
        self.ready.retain_mut(|ready| {
            ready.kept.fill(None);
            ready.swappable
        });
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
        let place = self.ready(shape, &shapes)?;
        let given = std::iter::once(inputs).chain(states.iter().map(Vec::as_slice));
        let tensors = given.zip(&shapes).map(|(data, shape)| Ok(Tensor::from_shape(shape, data)?.into()));
        let mut tensors = tensors.collect::<TractResult<TVec<TValue>>>().map_err(failed)?;
        let ready = &mut self.ready[place];
        if ready.swappable {
            tensors.extend(self.weights.iter().cloned());
        }
        let outputs = ready.run(tensors).map_err(failed)?;
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

    /// The place of the model optimised for inputs of this shape.
    fn ready(&mut self, shape: &[usize], shapes: &[Vec<usize>]) -> Result<usize> {
        if let Some(place) = self.ready.iter().position(|ready| ready.shape == shape) {
            return Ok(place);
        }
        // Whatever the trainer refuses never reaches tract.
        let outputs = self.outputs();
        self.model.inner.plan(shapes, outputs)?;
        let plan = match self.folded {
            true => Err(()),
            // Where an operator wants to know its weights, they are folded in after all.
            false => self.plan(shapes, outputs, true).map_err(drop),
        };
        let (plan, swappable) = match plan {
            Ok(plan) => (plan, true),
            Err(()) => (self.plan(shapes, outputs, false).map_err(failed)?, false),
        };
        if self.ready.len() == SHAPES_MAX {
            self.ready.remove(0);
        }
        let own = if swappable { shapes.len() } else { usize::MAX };
        self.ready.push(PreparedModel::new(shape.to_vec(), plan, own));
        Ok(self.ready.len() - 1)
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

    fn plan(
        &self,
        shapes: &[Vec<usize>],
        outputs: usize,
        swappable: bool,
    ) -> TractResult<Arc<TypedRunnableModel>> {
        let inner = &self.model.inner;
        let mut file = match swappable {
            true => export::without(&inner.stripped, inner.parameters()),
            false => {
                let weights = self.weights.iter().map(|tensor| tensor.to_plain_array_view::<f32>());
                let weights = weights.collect::<TractResult<Vec<_>>>()?;
                let flat: Vec<f32> = weights.iter().flat_map(|tensor| tensor.iter().copied()).collect();
                export::fill(&inner.stripped, inner.parameters(), &flat)
            }
        };
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
        let parameters = inner.parameters().iter().map(|parameter| &parameter.shape);
        let inputs = shapes.iter().chain(parameters.filter(|_| swappable));
        for (index, shape) in inputs.enumerate() {
            model.set_input_fact(index, f32::fact(shape).into())?;
        }
        model.into_optimized()?.into_runnable()
    }
}

impl PreparedModel {
    /// `own` is the number of inputs that are not weights.
    fn new(shape: Vec<usize>, plan: Arc<TypedRunnableModel>, own: usize) -> Self {
        let model = plan.model();
        let weights: Vec<usize> = model.inputs.iter().skip(own).map(|outlet| outlet.node).collect();
        let mut settled = vec![false; model.nodes.len()];
        let constant = |node: usize| model.nodes[node].op_is::<tract_onnx::tract_core::ops::konst::Const>();
        weights.iter().for_each(|&node| settled[node] = true);
        for &node in plan.order_without_consts() {
            let inputs = &model.nodes[node].inputs;
            settled[node] |=
                !inputs.is_empty() && inputs.iter().all(|input| settled[input.node] || constant(input.node));
        }
        // Weights themselves are handed in, and nothing is gained by keeping them.
        weights.iter().for_each(|&node| settled[node] = false);
        let kept = vec![None; settled.len()];
        PreparedModel { shape, swappable: own != usize::MAX, settled, kept, plan }
    }

    fn run(&mut self, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let PreparedModel { settled, kept, plan, .. } = self;
        plan.spawn()?.run_plan_with_eval(inputs, |context, state, node, inputs| {
            if let Some(values) = &kept[node.id] {
                return Ok(values.clone());
            }
            let keep = settled[node.id] && state.is_none();
            let values = plan::eval(context, state, node, inputs)?;
            if keep {
                kept[node.id] = Some(values.clone());
            }
            TractResult::Ok(values)
        })
    }
}

fn failed(error: TractError) -> ModelError {
    ModelError::Inference(format!("{error:#}"))
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

#[cfg(all(test, feature = "shipped"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::Predictor;
    use crate::{LoadOptions, Model, shipped};

    /// A swap keeps the plan and forgets what followed from the old weights.
    #[test]
    fn every_shipped_model_is_planned_once() {
        for name in shipped::NAMES {
            let model = Model::load(shipped::by_name(name).unwrap(), &LoadOptions::default()).unwrap();
            let shape: Vec<usize> = model.input_shape().iter().map(|size| size.unwrap_or(2)).collect();
            let inputs = vec![0.1; shape.iter().product()];
            let weights = model.initial_weights();
            let mut predictor = Predictor::new(&model, &weights).unwrap();
            predictor.predict(&inputs, &shape).unwrap();
            let kept = predictor.ready[0].kept.iter().flatten().count();
            assert!(kept > 0, "{name}: something follows from the weights alone");
            predictor.set_weights(&weights).unwrap();
            assert_eq!(predictor.ready.len(), 1, "{name}: the plan stays");
            assert!(predictor.ready[0].kept.iter().all(Option::is_none), "{name}: and the old weights go");
            predictor.predict(&inputs, &shape).unwrap();
            assert_eq!(predictor.ready[0].kept.iter().flatten().count(), kept);
        }
    }
}
