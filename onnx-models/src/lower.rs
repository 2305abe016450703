//! Lowering of a graph, given the shape of its input, to a plan with every size known.
//!
//! All shapes are checked here, with checked arithmetic and against the limits, so that no backend ever sees operands
//! that do not fit, and no run takes more memory than allowed.

use std::sync::Arc;

use crate::error::{GraphNodeError, ModelError, NodeResult, Result};
use crate::graph::{ModelGraph, ValueId, ValueSource};
use crate::kernel::Kernel;
use crate::limits::ModelLimits;
use crate::lowered_value::{FoldedInts, LoweredFloat, LoweredValue};
use crate::plan::{ExecutionPlan, PlanConstant, PlanSlot, PlanStep};
use crate::proto::{self, TensorValues};

/// Plans a run for inputs of these shapes; `outputs` is the number of graph outputs to compute.
pub(crate) fn plan(
    graph: &ModelGraph,
    inputs: &[Vec<usize>],
    outputs: usize,
    limits: &ModelLimits,
) -> Result<ExecutionPlan> {
    let mut builder = PlanBuilder {
        graph,
        limits,
        known: vec![None; graph.values.len()],
        plan: ExecutionPlan {
            slots: 0,
            inputs: vec![],
            parameters: vec![],
            constants: vec![],
            steps: vec![],
            outputs: vec![],
        },
        bytes: 0,
    };
    for (input, shape) in graph.inputs.iter().zip(inputs) {
        let slot = builder.slot(shape).map_err(|error| builder.at_boundary(input.value, error))?;
        builder.plan.inputs.push((slot, shape.clone()));
        builder.known[input.value] = Some(LoweredFloat { slot, shape: shape.clone(), constant: None }.into());
    }
    for parameter in &graph.parameters {
        let slot = builder.plan.slots;
        builder.plan.slots += 1;
        builder.plan.parameters.push(slot);
        builder.known[parameter.value] =
            Some(LoweredFloat { slot, shape: parameter.shape.clone(), constant: None }.into());
    }
    let needed = graph.needed(&graph.outputs[..outputs]);
    for (index, node) in graph.nodes.iter().enumerate() {
        if !needed[index] {
            continue;
        }
        let fail =
            |cause| ModelError::Node { node: node.name.clone(), operator: node.operator.clone(), cause };
        for value in node.inputs.iter().flatten() {
            builder.fetch(*value).map_err(fail)?;
        }
        let mut view = NodeLowering { builder: &mut builder, inputs: &node.inputs, outputs: &node.outputs };
        let known = node.op.lower(&mut view).map_err(fail)?;
        for (value, known) in node.outputs.iter().zip(known) {
            if let Some(value) = value {
                builder.known[*value] = Some(known);
            }
        }
    }
    for &value in &graph.outputs[..outputs] {
        builder.fetch(value).map_err(|error| builder.at_boundary(value, error))?;
        match &builder.known[value] {
            Some(LoweredValue::Float(float)) => builder.plan.outputs.push((float.slot, float.shape.clone())),
            _ => {
                let cause = GraphNodeError::Shapes("the output is not computed from floats".to_owned());
                return Err(builder.at_boundary(value, cause));
            }
        }
    }
    Ok(builder.plan.finish())
}

struct PlanBuilder<'g> {
    graph: &'g ModelGraph,
    limits: &'g ModelLimits,
    known: Vec<Option<LoweredValue>>,
    plan: ExecutionPlan,
    bytes: usize,
}

impl PlanBuilder<'_> {
    fn at_boundary(&self, value: ValueId, cause: GraphNodeError) -> ModelError {
        ModelError::Node {
            node: self.graph.values[value].clone(),
            operator: "input or output".to_owned(),
            cause,
        }
    }

    /// A new slot for a tensor of this shape, within the limits.
    fn slot(&mut self, shape: &[usize]) -> NodeResult<PlanSlot> {
        let limit = |what: &str, limit: usize| {
            Err(GraphNodeError::Shapes(format!("{shape:?} exceeds {what} = {limit}")))
        };
        if shape.len() > self.limits.rank_max {
            return limit("limits.rank_max", self.limits.rank_max);
        }
        let elements = match proto::elements(shape) {
            Some(0) => return Err(GraphNodeError::Shapes(format!("{shape:?} is empty"))),
            Some(elements) if elements <= self.limits.tensor_elements_max => elements,
            _ => return limit("limits.tensor_elements_max", self.limits.tensor_elements_max),
        };
        self.bytes = self.bytes.saturating_add(elements.saturating_mul(4));
        if self.bytes > self.limits.activation_bytes_max {
            return limit("limits.activation_bytes_max", self.limits.activation_bytes_max);
        }
        self.plan.slots += 1;
        Ok(self.plan.slots - 1)
    }

    fn constant(&mut self, shape: Vec<usize>, data: Arc<[f32]>) -> NodeResult<LoweredFloat> {
        let slot = self.slot(&shape)?;
        self.plan.constants.push(PlanConstant { slot, shape: shape.clone(), data: data.clone() });
        Ok(LoweredFloat { slot, shape, constant: Some(data) })
    }

    /// Makes a constant of the file known when it is first used.
    fn fetch(&mut self, value: ValueId) -> NodeResult<()> {
        if self.known[value].is_some() {
            return Ok(());
        }
        if let ValueSource::Constant(tensor) = &self.graph.sources[value] {
            let known = match &tensor.data {
                TensorValues::Int(data) => FoldedInts::new(tensor.shape.clone(), data.clone())?.into(),
                TensorValues::Float(data) => {
                    self.constant(tensor.shape.clone(), data.as_slice().into())?.into()
                }
            };
            self.known[value] = Some(known);
        }
        Ok(())
    }
}

/// A node being lowered: its inputs by position, and the plan to add kernels to.
pub(crate) struct NodeLowering<'a, 'g> {
    builder: &'a mut PlanBuilder<'g>,
    inputs: &'a [Option<ValueId>],
    outputs: &'a [Option<ValueId>],
}

impl NodeLowering<'_, '_> {
    pub(crate) fn inputs(&self) -> usize {
        self.inputs.len()
    }

    /// True if anything names this output.
    pub(crate) fn wants(&self, output: usize) -> bool {
        self.outputs.get(output).is_some_and(Option::is_some)
    }

    fn known_or_none(&self, index: usize) -> Option<&LoweredValue> {
        self.inputs.get(index).copied().flatten().and_then(|value| self.builder.known[value].as_ref())
    }

    pub(crate) fn known(&self, index: usize) -> NodeResult<&LoweredValue> {
        self.known_or_none(index).ok_or_else(|| GraphNodeError::Input { index, why: "is missing".to_owned() })
    }

    pub(crate) fn float_or_none(&self, index: usize) -> NodeResult<Option<LoweredFloat>> {
        match self.known_or_none(index) {
            None => Ok(None),
            Some(LoweredValue::Float(float)) => Ok(Some(float.clone())),
            Some(LoweredValue::Int(_)) => {
                Err(GraphNodeError::Input { index, why: "holds integers, expected floats".to_owned() })
            }
        }
    }

    pub(crate) fn float(&self, index: usize) -> NodeResult<LoweredFloat> {
        self.known(index)?;
        self.float_or_none(index)?
            .ok_or_else(|| GraphNodeError::Input { index, why: "is missing".to_owned() })
    }

    pub(crate) fn ints_or_none(&self, index: usize) -> NodeResult<Option<FoldedInts>> {
        match self.known_or_none(index) {
            None => Ok(None),
            Some(LoweredValue::Int(ints)) => Ok(Some(ints.clone())),
            Some(LoweredValue::Float(_)) => {
                Err(GraphNodeError::Input { index, why: "holds floats, expected integers".to_owned() })
            }
        }
    }

    pub(crate) fn ints(&self, index: usize) -> NodeResult<FoldedInts> {
        self.known(index)?;
        self.ints_or_none(index)?.ok_or_else(|| GraphNodeError::Input { index, why: "is missing".to_owned() })
    }

    /// A single integer.
    pub(crate) fn scalar(&self, index: usize) -> NodeResult<i64> {
        match self.ints(index)?.data.as_slice() {
            &[only] => Ok(only),
            many => Err(GraphNodeError::Input {
                index,
                why: format!("holds {} integers, expected one", many.len()),
            }),
        }
    }

    /// Adds a kernel whose output has this shape.
    pub(crate) fn emit(
        &mut self,
        kernel: Kernel,
        inputs: &[&LoweredFloat],
        shape: Vec<usize>,
    ) -> NodeResult<LoweredFloat> {
        let output = self.builder.slot(&shape)?;
        let inputs = inputs.iter().map(|float| float.slot).collect();
        self.builder.plan.steps.push(PlanStep { kernel, inputs, last_use: vec![], output });
        Ok(LoweredFloat { slot: output, shape, constant: None })
    }

    /// Counts a tensor that a kernel needs for itself towards the limits.
    pub(crate) fn reserve(&mut self, shape: &[usize]) -> NodeResult<()> {
        self.builder.slot(shape).map(drop)
    }

    pub(crate) fn constant(&mut self, shape: Vec<usize>, data: Arc<[f32]>) -> NodeResult<LoweredFloat> {
        self.builder.constant(shape, data)
    }

    /// A tensor of one value everywhere.
    pub(crate) fn filled(&mut self, shape: Vec<usize>, value: f32) -> NodeResult<LoweredFloat> {
        let slot = self.builder.slot(&shape)?;
        let data: Arc<[f32]> = std::iter::repeat_n(value, shape.iter().product()).collect();
        self.builder.plan.constants.push(PlanConstant { slot, shape: shape.clone(), data: data.clone() });
        Ok(LoweredFloat { slot, shape, constant: Some(data) })
    }
}
