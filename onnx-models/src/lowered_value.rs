//! Values as they are known while lowering: floats by shape and slot, integers by value.

use std::sync::Arc;

use crate::error::{GraphNodeError, NodeResult};
use crate::plan::PlanSlot;
use crate::proto;

/// Shape arithmetic needs a handful of integers; more is a mistake or an attack.
const INTS_MAX: usize = 1 << 16;

/// A value as known before the run.
#[derive(Debug, Clone)]
pub(crate) enum LoweredValue {
    Float(LoweredFloat),
    Int(FoldedInts),
}

/// A tensor that is computed.
#[derive(Debug, Clone)]
pub(crate) struct LoweredFloat {
    pub(crate) slot: PlanSlot,
    pub(crate) shape: Vec<usize>,
    /// The values, if they are fixed.
    pub(crate) constant: Option<Arc<[f32]>>,
}

/// Integers that are folded.
#[derive(Debug, Clone)]
pub(crate) struct FoldedInts {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<i64>,
}

impl LoweredValue {
    pub(crate) fn shape(&self) -> &[usize] {
        match self {
            LoweredValue::Float(float) => &float.shape,
            LoweredValue::Int(ints) => &ints.shape,
        }
    }

    pub(crate) fn as_float(&self) -> Option<&LoweredFloat> {
        match self {
            LoweredValue::Float(float) => Some(float),
            LoweredValue::Int(_) => None,
        }
    }
}

impl From<LoweredFloat> for LoweredValue {
    fn from(float: LoweredFloat) -> Self {
        LoweredValue::Float(float)
    }
}

impl From<FoldedInts> for LoweredValue {
    fn from(ints: FoldedInts) -> Self {
        LoweredValue::Int(ints)
    }
}

impl FoldedInts {
    pub(crate) fn check(elements: usize) -> NodeResult<()> {
        if elements > INTS_MAX {
            return Err(GraphNodeError::Shapes(format!(
                "{elements} integers, at most {INTS_MAX} are folded"
            )));
        }
        Ok(())
    }

    pub(crate) fn new(shape: Vec<usize>, data: Vec<i64>) -> NodeResult<Self> {
        FoldedInts::check(data.len())?;
        match proto::elements(&shape) {
            Some(elements) if elements == data.len() => Ok(FoldedInts { shape, data }),
            _ => Err(GraphNodeError::Shapes(format!("{} integers as {shape:?}", data.len()))),
        }
    }

    pub(crate) fn filled(shape: Vec<usize>, value: i64) -> NodeResult<Self> {
        let elements = proto::elements(&shape).unwrap_or(usize::MAX);
        FoldedInts::check(elements)?;
        Ok(FoldedInts { shape, data: vec![value; elements] })
    }
}
