//! The plan of a run: kernels in order, with the slots their operands and outputs are in.

use std::sync::Arc;

use crate::kernel::Kernel;

/// The place of a value during a run.
pub(crate) type PlanSlot = usize;

/// One kernel with its operands.
#[derive(Debug)]
pub(crate) struct PlanStep {
    pub(crate) kernel: Kernel,
    pub(crate) inputs: Vec<PlanSlot>,
    /// Operands that nothing needs afterwards.
    pub(crate) last_use: Vec<bool>,
    pub(crate) output: PlanSlot,
}

/// A fixed tensor.
#[derive(Debug, Clone)]
pub(crate) struct PlanConstant {
    pub(crate) slot: PlanSlot,
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Arc<[f32]>,
}

/// The run for one input shape.
#[derive(Debug)]
pub(crate) struct ExecutionPlan {
    pub(crate) slots: usize,
    pub(crate) inputs: Vec<(PlanSlot, Vec<usize>)>,
    /// Slot of each trainable parameter, in canonical order.
    pub(crate) parameters: Vec<PlanSlot>,
    pub(crate) constants: Vec<PlanConstant>,
    pub(crate) steps: Vec<PlanStep>,
    pub(crate) outputs: Vec<(PlanSlot, Vec<usize>)>,
}

impl ExecutionPlan {
    /// Reorders what computes the same from fewer values, and marks the last use of every slot.
    pub(crate) fn finish(mut self) -> Self {
        pool_first(&mut self);
        mark_last_uses(&mut self);
        self
    }
}

/// Moves a non-decreasing function behind the max pool that follows it: the same result from fewer values.
fn pool_first(plan: &mut ExecutionPlan) {
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
            && matches!(&plan.steps[before].kernel, Kernel::Unary(unary) if unary.is_non_decreasing())
        {
            let (first, second) = plan.steps.split_at_mut(index);
            std::mem::swap(&mut first[before].kernel, &mut second[0].kernel);
        }
    }
}

fn mark_last_uses(plan: &mut ExecutionPlan) {
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
