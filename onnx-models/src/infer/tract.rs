//! Inference through tract.

use std::collections::HashMap;

use prost::Message;
use tract_onnx::model::{Onnx, ParsingContext};
use tract_onnx::ops::rec::common::CommonRec;
use tract_onnx::ops::rec::rnn::RNN;
use tract_onnx::pb as tract_pb;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::{konst, math, nn};
use tract_onnx::tract_core::plan;
use tract_onnx::tract_hir::infer::InferenceOp;
use tract_onnx::tract_hir::internal::{TypedOp, expand};

use crate::error::{ModelError, Result};
use crate::export;
use crate::infer::InferenceEngine;
use crate::model::ModelInner;
use crate::order::Parameter;
use crate::pb;
use crate::plan::ExecutionPlan;

/// tract, an engine for inference alone.
///
/// Values that depend on weights alone (packed matrices, mostly) are cached by the first prediction after a swap.
#[derive(Debug, Clone, Copy)]
pub enum Tract {}

#[allow(private_interfaces)]
impl InferenceEngine for Tract {
    const NAME: &'static str = "tract";

    type Weight = TValue;

    type Prepared = TractPlan;

    fn weight(parameter: &Parameter, values: &[f32]) -> Result<TValue> {
        Tensor::from_shape(&parameter.shape, values).map(TValue::from).map_err(failed)
    }

    fn prepare(
        model: &ModelInner,
        plan: ExecutionPlan,
        weights: &[TValue],
        folds_weights: bool,
    ) -> Result<TractPlan> {
        // Some of tract's operators need constant weights.
        if !folds_weights && let Ok(optimised) = optimised(model, &plan, None) {
            return Ok(TractPlan::new(optimised, plan.inputs.len()));
        }
        let optimised = optimised(model, &plan, Some(weights)).map_err(failed)?;
        Ok(TractPlan::new(optimised, usize::MAX))
    }

    fn clear(prepared: &mut TractPlan) -> bool {
        prepared.cached.fill(None);
        prepared.weights_are_inputs
    }

    fn run(
        prepared: &mut TractPlan,
        inputs: &[(&[f32], &[usize])],
        weights: &[TValue],
    ) -> Result<Vec<Vec<f32>>> {
        let tensors = inputs.iter().map(|(data, shape)| Ok(Tensor::from_shape(shape, data)?.into()));
        let mut tensors = tensors.collect::<TractResult<TVec<TValue>>>().map_err(failed)?;
        if prepared.weights_are_inputs {
            tensors.extend(weights.iter().cloned());
        }
        let outputs = prepared.run(tensors).map_err(failed)?;
        outputs.iter().map(|output| floats(output).map_err(failed)).collect()
    }
}

/// A model optimised by tract for inputs of one shape.
pub struct TractPlan {
    plan: Arc<TypedRunnableModel>,
    /// True if the weights are inputs of the plan, after those of the model; otherwise they are constants in it.
    weights_are_inputs: bool,
    /// For each node of the plan, whether its outputs depend on weights alone.
    depends_on_weights_only: Vec<bool>,
    /// The outputs of these nodes with the current weights.
    cached: Vec<Option<TVec<TValue>>>,
}

impl TractPlan {
    /// `model_inputs` is the number of inputs that are not weights; `usize::MAX` if none are.
    fn new(plan: Arc<TypedRunnableModel>, model_inputs: usize) -> Self {
        let model = plan.model();
        let weights: Vec<usize> = model.inputs.iter().skip(model_inputs).map(|outlet| outlet.node).collect();
        let mut weights_only = vec![false; model.nodes.len()];
        let constant = |node: usize| model.nodes[node].op_is::<konst::Const>();
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

/// The model optimised for the shapes of a plan, with these weights as constants or, if there are none, as inputs after
/// those of the model.
fn optimised(
    model: &ModelInner,
    plan: &ExecutionPlan,
    weights: Option<&[TValue]>,
) -> TractResult<Arc<TypedRunnableModel>> {
    let mut file = match weights {
        None => without(&model.stripped, model.parameters()),
        Some(weights) => {
            let weights = weights.iter().map(|tensor| floats(tensor)).collect::<TractResult<Vec<_>>>()?;
            export::fill(&model.stripped, model.parameters().zip(weights.iter().map(Vec::as_slice)))
        }
    };
    if let Some(graph) = &mut file.graph {
        graph.output.truncate(plan.outputs.len());
        // Declared shapes may be wrong; tract infers them from the input's.
        graph.value_info.clear();
        for node in graph.node.iter_mut().filter(|node| node.op_type == "Dropout") {
            node.input.truncate(1);
            node.output.truncate(1);
        }
    }
    let mut loaded = onnx().model_for_read(&mut file.encode_to_vec().as_slice())?;
    let parameters = model.parameters().map(|parameter| &parameter.shape);
    let shapes = plan.inputs.iter().map(|(_, shape)| shape);
    for (index, shape) in shapes.chain(parameters.filter(|_| weights.is_none())).enumerate() {
        loaded.set_input_fact(index, f32::fact(shape).into())?;
    }
    loaded.into_optimized()?.into_runnable()
}

fn floats(tensor: &Tensor) -> TractResult<Vec<f32>> {
    Ok(tensor.to_plain_array_view::<f32>()?.iter().copied().collect())
}

fn failed(error: TractError) -> ModelError {
    ModelError::Inference(format!("{error:#}"))
}

/// The file with its parameters as further inputs, in canonical order after its own.
///
/// They get names of their own: tract calls what it makes of a node after it, such as the bias of `conv1` `conv1.bias`.
fn without<'a>(stripped: &pb::ModelProto, parameters: impl Iterator<Item = &'a Parameter>) -> pb::ModelProto {
    let mut file = stripped.clone();
    let parameters: Vec<&Parameter> = parameters.collect();
    let new_name = |index: usize| format!("evenhand parameter {index}");
    let places: HashMap<&str, usize> =
        parameters.iter().enumerate().map(|(index, p)| (p.name.as_str(), index)).collect();
    let graph = file.graph.get_or_insert_default();
    graph.initializer.retain(|tensor| !places.contains_key(tensor.name.as_str()));
    graph.input.retain(|input| !places.contains_key(input.name.as_str()));
    graph.node.retain(|node| node.op_type != "Constant" || !places.contains_key(node.output[0].as_str()));
    for input in graph.node.iter_mut().flat_map(|node| &mut node.input) {
        if let Some(&index) = places.get(input.as_str()) {
            *input = new_name(index);
        }
    }
    graph.input.extend(parameters.iter().enumerate().map(|(index, p)| input(new_name(index), &p.shape)));
    file
}

fn input(name: String, shape: &[usize]) -> pb::ValueInfoProto {
    let dimension = |&size: &usize| pb::DimensionProto {
        value: Some(pb::DimensionValue::Size(size as i64)),
        ..Default::default()
    };
    let tensor = pb::TensorTypeProto {
        elem_type: pb::DataType::Float as i32,
        shape: Some(pb::TensorShapeProto { dim: shape.iter().map(dimension).collect() }),
    };
    let r#type = Some(pb::TypeProto { tensor_type: Some(tensor), ..Default::default() });
    pb::ValueInfoProto { name, r#type, ..Default::default() }
}

/// tract's operators with a corrected RNN: tract's ignores the activation and always computes tanh.
fn onnx() -> Onnx {
    let mut onnx = tract_onnx::onnx();
    onnx.op_register.insert("RNN", rnn);
    onnx
}

fn rnn(
    _: &ParsingContext<'_>,
    node: &tract_pb::NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
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

    use super::Tract;
    use crate::{LoadOptions, Model, Predictor, shipped};

    /// A swap leaves the plan in place and clears the values computed from the old weights.
    #[test]
    fn a_swap_of_weights_reuses_the_prepared_model() {
        for name in shipped::NAMES {
            let model = Model::load(shipped::by_name(name).unwrap(), &LoadOptions::default()).unwrap();
            let shape: Vec<usize> = model.input_shape().iter().map(|size| size.unwrap_or(2)).collect();
            let inputs = vec![0.1; shape.iter().product()];
            let weights = model.initial_weights();
            let mut predictor = Predictor::<Tract>::on(&model, &weights).unwrap();
            predictor.predict(&inputs, &shape).unwrap();
            let cached = predictor.prepared[0].prepared.cached.iter().flatten().count();
            assert!(cached > 0, "{name}: some values depend on weights alone");
            predictor.set_weights(&weights).unwrap();
            assert_eq!(predictor.prepared.len(), 1, "{name}: the prepared model stays");
            assert!(
                predictor.prepared[0].prepared.cached.iter().all(Option::is_none),
                "{name}: values of the old weights are cleared"
            );
            predictor.predict(&inputs, &shape).unwrap();
            assert_eq!(predictor.prepared[0].prepared.cached.iter().flatten().count(), cached);
        }
    }
}
