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
use crate::personal::ModelPart;

/// Prepared models cached, one for each of the latest input shapes.
const SHAPES_MAX: usize = 8;

/// Predictions of a model with the weights that were set last.
///
/// tract prepares the model once for each input shape, with the weights as inputs of its plan; values that depend on
/// weights alone (packed matrices, mostly) are cached by the first prediction. So one predictor serves a graph for as
/// long as it is used: [`set_weights`](Self::set_weights) copies the weights and clears that cache, nothing is optimised
/// again, and the outputs equal those of a new predictor bit for bit. Personal weights are those of the file until
/// [`set_personal`](Self::set_personal) swaps them in the same way.
///
/// ```
/// use evenhand_models::{LoadOptions, Model, Predictor, shipped};
///
/// let model = Model::load(shipped::ELECTRICITY_RNN, &LoadOptions::default())?;
/// let first = model.initial_weights();
/// let second: Vec<f32> = first.iter().map(|weight| weight * 0.5).collect();
/// let mut predictor = Predictor::new(&model, &first)?;
/// predictor.predict(&[0.5; 8 * 5], &[1, 8, 5])?;
/// predictor.set_weights(&second)?;
/// let swapped = predictor.predict(&[0.5; 8 * 5], &[1, 8, 5])?;
/// assert_eq!(swapped, Predictor::new(&model, &second)?.predict(&[0.5; 8 * 5], &[1, 8, 5])?);
/// # Ok::<(), evenhand_models::ModelError>(())
/// ```
pub struct Predictor {
    model: Model,
    /// The tensors of all parameters in the order of the plan: the shared ones, then the personal ones.
    weights: Vec<TValue>,
    prepared: Vec<TractPlan>,
    folds_weights: bool,
}

/// A model optimised by tract for inputs of one shape.
struct TractPlan {
    shape: Vec<usize>,
    plan: Arc<TypedRunnableModel>,
    /// True if the weights are inputs of the plan, after those of the model; otherwise they are constants in it.
    weights_are_inputs: bool,
    /// For each node of the plan, whether its outputs depend on weights alone.
    depends_on_weights_only: Vec<bool>,
    /// The outputs of these nodes with the current weights.
    cached: Vec<Option<TVec<TValue>>>,
}

impl Predictor {
    /// A predictor with these weights.
    pub fn new(model: &Model, weights: &[f32]) -> Result<Self> {
        Predictor::build(model, weights, false)
    }

    /// A predictor whose plan holds the weights as constants, so that tract optimises the model again after every swap:
    /// for many predictions between few swaps.
    pub fn folding(model: &Model, weights: &[f32]) -> Result<Self> {
        Predictor::build(model, weights, true)
    }

    fn build(model: &Model, weights: &[f32], folds_weights: bool) -> Result<Self> {
        model.inner.check_weights(weights)?;
        let personal = model.initial_personal();
        let tensors = model.inner.bind(weights, &personal).map(tensor).collect::<Result<_>>()?;
        Ok(Predictor { model: model.clone(), weights: tensors, prepared: vec![], folds_weights })
    }

    /// The model that is run.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Sets the shared weights of all later predictions; after an error the previous ones stay.
    pub fn set_weights(&mut self, weights: &[f32]) -> Result<()> {
        let inner = &self.model.inner;
        inner.check_weights(weights)?;
        let tensors = inner.part(ModelPart::Shared).split(weights).map(tensor).collect::<Result<Vec<_>>>()?;
        self.swap(0, tensors);
        Ok(())
    }

    /// Sets the personal weights of all later predictions; after an error the previous ones stay.
    pub fn set_personal(&mut self, personal: &[f32]) -> Result<()> {
        let inner = &self.model.inner;
        inner.check_personal(personal)?;
        let tensors =
            inner.part(ModelPart::Personal).split(personal).map(tensor).collect::<Result<Vec<_>>>()?;
        self.swap(self.model.parameters().len(), tensors);
        Ok(())
    }

    /// Replaces the tensors from `first` on; what was computed from the old ones is cleared.
    fn swap(&mut self, first: usize, tensors: Vec<TValue>) {
        let end = first + tensors.len();
        self.weights.splice(first..end, tensors);
        self.prepared.retain_mut(|prepared| {
            prepared.cached.fill(None);
            prepared.weights_are_inputs
        });
    }

    /// The first output for these inputs. Hidden states that the model takes as further inputs are zero.
    pub fn predict(&mut self, inputs: &[f32], shape: &[usize]) -> Result<Vec<f32>> {
        self.predict_from(inputs, shape, &mut vec![])
    }

    /// The first output for these inputs and hidden states: the model's further inputs, empty for zeros. They are
    /// replaced by its further outputs, so that a stream can be predicted in parts.
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
        let place = self.prepare(shape, &shapes)?;
        let given = std::iter::once(inputs).chain(states.iter().map(Vec::as_slice));
        let tensors = given.zip(&shapes).map(|(data, shape)| Ok(Tensor::from_shape(shape, data)?.into()));
        let mut tensors = tensors.collect::<TractResult<TVec<TValue>>>().map_err(failed)?;
        let prepared = &mut self.prepared[place];
        if prepared.weights_are_inputs {
            tensors.extend(self.weights.iter().cloned());
        }
        let outputs = prepared.run(tensors).map_err(failed)?;
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

    /// The index of the model prepared for inputs of this shape.
    fn prepare(&mut self, shape: &[usize], shapes: &[Vec<usize>]) -> Result<usize> {
        if let Some(place) = self.prepared.iter().position(|prepared| prepared.shape == shape) {
            return Ok(place);
        }
        // A graph that cannot be lowered never reaches tract.
        let outputs = self.outputs();
        self.model.inner.plan(shapes, outputs)?;
        let plan = match self.folds_weights {
            true => Err(()),
            // Some of tract's operators need constant weights.
            false => self.plan(shapes, outputs, true).map_err(drop),
        };
        let (plan, weights_are_inputs) = match plan {
            Ok(plan) => (plan, true),
            Err(()) => (self.plan(shapes, outputs, false).map_err(failed)?, false),
        };
        if self.prepared.len() == SHAPES_MAX {
            self.prepared.remove(0);
        }
        let model_inputs = if weights_are_inputs { shapes.len() } else { usize::MAX };
        self.prepared.push(TractPlan::new(shape.to_vec(), plan, model_inputs));
        Ok(self.prepared.len() - 1)
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
        weights_are_inputs: bool,
    ) -> TractResult<Arc<TypedRunnableModel>> {
        let inner = &self.model.inner;
        let mut file = match weights_are_inputs {
            true => export::without(&inner.stripped, inner.parameters()),
            false => {
                let views = self.weights.iter().map(|tensor| {
                    Ok(tensor.to_plain_array_view::<f32>()?.iter().copied().collect::<Vec<f32>>())
                });
                let weights = views.collect::<TractResult<Vec<_>>>()?;
                export::fill(&inner.stripped, inner.parameters().zip(weights.iter().map(Vec::as_slice)))
            }
        };
        if let Some(graph) = &mut file.graph {
            graph.output.truncate(outputs);
            // Declared shapes may be wrong; tract infers them from the input's.
            graph.value_info.clear();
            for node in graph.node.iter_mut().filter(|node| node.op_type == "Dropout") {
                node.input.truncate(1);
                node.output.truncate(1);
            }
        }
        let mut model = onnx().model_for_proto_model(&file)?;
        let parameters = inner.parameters().map(|parameter| &parameter.shape);
        let inputs = shapes.iter().chain(parameters.filter(|_| weights_are_inputs));
        for (index, shape) in inputs.enumerate() {
            model.set_input_fact(index, f32::fact(shape).into())?;
        }
        model.into_optimized()?.into_runnable()
    }
}

impl TractPlan {
    /// `model_inputs` is the number of inputs that are not weights; `usize::MAX` if none are.
    fn new(shape: Vec<usize>, plan: Arc<TypedRunnableModel>, model_inputs: usize) -> Self {
        let model = plan.model();
        let weights: Vec<usize> = model.inputs.iter().skip(model_inputs).map(|outlet| outlet.node).collect();
        let mut weights_only = vec![false; model.nodes.len()];
        let constant = |node: usize| model.nodes[node].op_is::<tract_onnx::tract_core::ops::konst::Const>();
        weights.iter().for_each(|&node| weights_only[node] = true);
        for &node in plan.order_without_consts() {
            let inputs = &model.nodes[node].inputs;
            weights_only[node] |= !inputs.is_empty()
                && inputs.iter().all(|input| weights_only[input.node] || constant(input.node));
        }
        // The weights themselves are inputs of every run.
        weights.iter().for_each(|&node| weights_only[node] = false);
        let cached = vec![None; weights_only.len()];
        TractPlan {
            shape,
            weights_are_inputs: model_inputs != usize::MAX,
            depends_on_weights_only: weights_only,
            cached,
            plan,
        }
    }

    fn run(&mut self, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let TractPlan { depends_on_weights_only, cached, plan, .. } = self;
        plan.spawn()?.run_plan_with_eval(inputs, |context, state, node, inputs| {
            if let Some(values) = &cached[node.id] {
                return Ok(values.clone());
            }
            let is_cacheable = depends_on_weights_only[node.id] && state.is_none();
            let values = plan::eval(context, state, node, inputs)?;
            if is_cacheable {
                cached[node.id] = Some(values.clone());
            }
            TractResult::Ok(values)
        })
    }
}

fn tensor((parameter, values): (&Parameter, &[f32])) -> Result<TValue> {
    Tensor::from_shape(&parameter.shape, values).map(TValue::from).map_err(failed)
}

fn failed(error: TractError) -> ModelError {
    ModelError::Inference(format!("{error:#}"))
}

/// tract's operators with a corrected RNN: tract's ignores the activation and always computes tanh.
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

    /// A swap leaves the plan in place and clears the values computed from the old weights.
    #[test]
    fn a_swap_of_weights_reuses_the_prepared_model() {
        for name in shipped::NAMES {
            let model = Model::load(shipped::by_name(name).unwrap(), &LoadOptions::default()).unwrap();
            let shape: Vec<usize> = model.input_shape().iter().map(|size| size.unwrap_or(2)).collect();
            let inputs = vec![0.1; shape.iter().product()];
            let weights = model.initial_weights();
            let mut predictor = Predictor::new(&model, &weights).unwrap();
            predictor.predict(&inputs, &shape).unwrap();
            let cached = predictor.prepared[0].cached.iter().flatten().count();
            assert!(cached > 0, "{name}: some values depend on weights alone");
            predictor.set_weights(&weights).unwrap();
            assert_eq!(predictor.prepared.len(), 1, "{name}: the prepared model stays");
            assert!(
                predictor.prepared[0].cached.iter().all(Option::is_none),
                "{name}: values of the old weights are cleared"
            );
            predictor.predict(&inputs, &shape).unwrap();
            assert_eq!(predictor.prepared[0].cached.iter().flatten().count(), cached);
        }
    }
}
