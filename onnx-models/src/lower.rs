//! From a graph and the shape of its input to a plan: a list of kernels with every size known.
//!
//! All shapes are checked here, with checked arithmetic and against the limits, so that no backend ever sees operands
//! that do not fit, and no run takes more memory than allowed.

use std::sync::Arc;

use crate::error::{ModelError, NodeError, NodeResult, Result};
use crate::graph::{Graph, Source, ValueId};
use crate::kernel::Kernel;
use crate::limits::Limits;
use crate::proto::{self, Data};

/// Where a value lives during a run.
pub(crate) type Slot = usize;

/// Shape arithmetic needs a handful of integers; more is a mistake or an attack.
const INTS_MAX: usize = 1 << 16;

/// What is known of a value before the run.
#[derive(Debug, Clone)]
pub(crate) enum Known {
    Float(Float),
    Int(Ints),
}

/// A tensor that is computed.
#[derive(Debug, Clone)]
pub(crate) struct Float {
    pub(crate) slot: Slot,
    pub(crate) shape: Vec<usize>,
    /// The values, if they are fixed.
    pub(crate) constant: Option<Arc<[f32]>>,
}

/// Integers that are folded.
#[derive(Debug, Clone)]
pub(crate) struct Ints {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<i64>,
}

impl Known {
    pub(crate) fn shape(&self) -> &[usize] {
        match self {
            Known::Float(float) => &float.shape,
            Known::Int(ints) => &ints.shape,
        }
    }

    pub(crate) fn as_float(&self) -> Option<&Float> {
        match self {
            Known::Float(float) => Some(float),
            Known::Int(_) => None,
        }
    }
}

impl From<Float> for Known {
    fn from(float: Float) -> Self {
        Known::Float(float)
    }
}

impl From<Ints> for Known {
    fn from(ints: Ints) -> Self {
        Known::Int(ints)
    }
}

impl Ints {
    pub(crate) fn check(elements: usize) -> NodeResult<()> {
        if elements > INTS_MAX {
            return Err(NodeError::Shapes(format!("{elements} integers, at most {INTS_MAX} are folded")));
        }
        Ok(())
    }

    pub(crate) fn new(shape: Vec<usize>, data: Vec<i64>) -> NodeResult<Self> {
        Ints::check(data.len())?;
        match proto::elements(&shape) {
            Some(elements) if elements == data.len() => Ok(Ints { shape, data }),
            _ => Err(NodeError::Shapes(format!("{} integers as {shape:?}", data.len()))),
        }
    }

    pub(crate) fn filled(shape: Vec<usize>, value: i64) -> NodeResult<Self> {
        let elements = proto::elements(&shape).unwrap_or(usize::MAX);
        Ints::check(elements)?;
        Ok(Ints { shape, data: vec![value; elements] })
    }
}

/// One kernel with its operands.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) kernel: Kernel,
    pub(crate) inputs: Vec<Slot>,
    /// Operands that nothing needs afterwards.
    pub(crate) last_use: Vec<bool>,
    pub(crate) output: Slot,
}

/// A fixed tensor.
#[derive(Debug, Clone)]
pub(crate) struct Constant {
    pub(crate) slot: Slot,
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Arc<[f32]>,
}

/// Everything to do for one input shape.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) slots: usize,
    pub(crate) inputs: Vec<(Slot, Vec<usize>)>,
    /// Slot of each trainable parameter, in canonical order.
    pub(crate) parameters: Vec<Slot>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) steps: Vec<Step>,
    pub(crate) outputs: Vec<(Slot, Vec<usize>)>,
}

/// Plans a run for inputs of these shapes; `outputs` says how many of the graph's outputs are wanted.
pub(crate) fn plan(graph: &Graph, inputs: &[Vec<usize>], outputs: usize, limits: &Limits) -> Result<Plan> {
    let mut builder = Builder {
        graph,
        limits,
        known: vec![None; graph.values.len()],
        plan: Plan {
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
        builder.known[input.value] = Some(Float { slot, shape: shape.clone(), constant: None }.into());
    }
    for parameter in &graph.parameters {
        let slot = builder.plan.slots;
        builder.plan.slots += 1;
        builder.plan.parameters.push(slot);
        builder.known[parameter.value] =
            Some(Float { slot, shape: parameter.shape.clone(), constant: None }.into());
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
        let mut view = Node { builder: &mut builder, inputs: &node.inputs, outputs: &node.outputs };
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
            Some(Known::Float(float)) => builder.plan.outputs.push((float.slot, float.shape.clone())),
            _ => {
                let cause = NodeError::Shapes("the output is not computed from floats".to_owned());
                return Err(builder.at_boundary(value, cause));
            }
        }
    }
    let mut plan = builder.plan;
    pool_first(&mut plan);
    mark_last_uses(&mut plan);
    Ok(plan)
}

/// Lets a nonlinearity that keeps the order of values come after the pool that picks the largest: the same result from
/// fewer values.
fn pool_first(plan: &mut Plan) {
    let mut uses = vec![0; plan.slots];
    let used =
        plan.steps.iter().flat_map(|step| &step.inputs).chain(plan.outputs.iter().map(|(slot, _)| slot));
    used.for_each(|&slot| uses[slot] += 1);
    let mut made_by = vec![None; plan.slots];
    for index in 0..plan.steps.len() {
        let step = &plan.steps[index];
        let before = made_by[step.inputs[0]].filter(|_| uses[step.inputs[0]] == 1);
        made_by[step.output] = Some(index);
        if let (Kernel::MaxPool(_), Some(before)) = (&step.kernel, before)
            && matches!(&plan.steps[before].kernel, Kernel::Unary(unary) if unary.keeps_order())
        {
            let (first, second) = plan.steps.split_at_mut(index);
            std::mem::swap(&mut first[before].kernel, &mut second[0].kernel);
        }
    }
}

fn mark_last_uses(plan: &mut Plan) {
    let mut needed = vec![false; plan.slots];
    plan.outputs.iter().for_each(|(slot, _)| needed[*slot] = true);
    for step in plan.steps.iter_mut().rev() {
        let mut last_use = vec![false; step.inputs.len()];
        for (place, &slot) in step.inputs.iter().enumerate().rev() {
            last_use[place] = !needed[slot];
            needed[slot] = true;
        }
        step.last_use = last_use;
    }
}

struct Builder<'g> {
    graph: &'g Graph,
    limits: &'g Limits,
    known: Vec<Option<Known>>,
    plan: Plan,
    bytes: usize,
}

impl Builder<'_> {
    fn at_boundary(&self, value: ValueId, cause: NodeError) -> ModelError {
        ModelError::Node {
            node: self.graph.values[value].clone(),
            operator: "input or output".to_owned(),
            cause,
        }
    }

    /// A new slot for a tensor of this shape, within the limits.
    fn slot(&mut self, shape: &[usize]) -> NodeResult<Slot> {
        let limit =
            |what: &str, limit: usize| Err(NodeError::Shapes(format!("{shape:?} exceeds {what} = {limit}")));
        if shape.len() > self.limits.rank_max {
            return limit("limits.rank_max", self.limits.rank_max);
        }
        let elements = match proto::elements(shape) {
            Some(0) => return Err(NodeError::Shapes(format!("{shape:?} is empty"))),
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

    fn constant(&mut self, shape: Vec<usize>, data: Arc<[f32]>) -> NodeResult<Float> {
        let slot = self.slot(&shape)?;
        self.plan.constants.push(Constant { slot, shape: shape.clone(), data: data.clone() });
        Ok(Float { slot, shape, constant: Some(data) })
    }

    /// Makes a constant of the file known when it is first used.
    fn fetch(&mut self, value: ValueId) -> NodeResult<()> {
        if self.known[value].is_some() {
            return Ok(());
        }
        if let Source::Constant(tensor) = &self.graph.sources[value] {
            let known = match &tensor.data {
                Data::Int(data) => Ints::new(tensor.shape.clone(), data.clone())?.into(),
                Data::Float(data) => self.constant(tensor.shape.clone(), data.as_slice().into())?.into(),
            };
            self.known[value] = Some(known);
        }
        Ok(())
    }
}

/// A node being lowered: its inputs by position, and the plan to add kernels to.
pub(crate) struct Node<'a, 'g> {
    builder: &'a mut Builder<'g>,
    inputs: &'a [Option<ValueId>],
    outputs: &'a [Option<ValueId>],
}

impl Node<'_, '_> {
    pub(crate) fn inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Whether anything names this output.
    pub(crate) fn wants(&self, output: usize) -> bool {
        self.outputs.get(output).is_some_and(Option::is_some)
    }

    fn known_or_none(&self, index: usize) -> Option<&Known> {
        self.inputs.get(index).copied().flatten().and_then(|value| self.builder.known[value].as_ref())
    }

    pub(crate) fn known(&self, index: usize) -> NodeResult<&Known> {
        self.known_or_none(index).ok_or_else(|| NodeError::Input { index, why: "is missing".to_owned() })
    }

    pub(crate) fn float_or_none(&self, index: usize) -> NodeResult<Option<Float>> {
        match self.known_or_none(index) {
            None => Ok(None),
            Some(Known::Float(float)) => Ok(Some(float.clone())),
            Some(Known::Int(_)) => {
                Err(NodeError::Input { index, why: "holds integers, expected floats".to_owned() })
            }
        }
    }

    pub(crate) fn float(&self, index: usize) -> NodeResult<Float> {
        self.known(index)?;
        self.float_or_none(index)?.ok_or_else(|| NodeError::Input { index, why: "is missing".to_owned() })
    }

    pub(crate) fn ints_or_none(&self, index: usize) -> NodeResult<Option<Ints>> {
        match self.known_or_none(index) {
            None => Ok(None),
            Some(Known::Int(ints)) => Ok(Some(ints.clone())),
            Some(Known::Float(_)) => {
                Err(NodeError::Input { index, why: "holds floats, expected integers".to_owned() })
            }
        }
    }

    pub(crate) fn ints(&self, index: usize) -> NodeResult<Ints> {
        self.known(index)?;
        self.ints_or_none(index)?.ok_or_else(|| NodeError::Input { index, why: "is missing".to_owned() })
    }

    /// A single integer.
    pub(crate) fn scalar(&self, index: usize) -> NodeResult<i64> {
        match self.ints(index)?.data.as_slice() {
            &[only] => Ok(only),
            many => {
                Err(NodeError::Input { index, why: format!("holds {} integers, expected one", many.len()) })
            }
        }
    }

    /// Adds a kernel whose output has this shape.
    pub(crate) fn emit(&mut self, kernel: Kernel, inputs: &[&Float], shape: Vec<usize>) -> NodeResult<Float> {
        let output = self.builder.slot(&shape)?;
        let inputs = inputs.iter().map(|float| float.slot).collect();
        self.builder.plan.steps.push(Step { kernel, inputs, last_use: vec![], output });
        Ok(Float { slot: output, shape, constant: None })
    }

    /// Counts a tensor that a kernel needs for itself towards the limits.
    pub(crate) fn reserve(&mut self, shape: &[usize]) -> NodeResult<()> {
        self.builder.slot(shape).map(drop)
    }

    pub(crate) fn constant(&mut self, shape: Vec<usize>, data: Arc<[f32]>) -> NodeResult<Float> {
        self.builder.constant(shape, data)
    }

    /// A tensor of one value everywhere.
    pub(crate) fn filled(&mut self, shape: Vec<usize>, value: f32) -> NodeResult<Float> {
        let slot = self.builder.slot(&shape)?;
        let data: Arc<[f32]> = std::iter::repeat_n(value, shape.iter().product()).collect();
        self.builder.plan.constants.push(Constant { slot, shape: shape.clone(), data: data.clone() });
        Ok(Float { slot, shape, constant: Some(data) })
    }
}
