//! Arithmetic on shapes: integers and booleans that depend on nothing but the input's shape, folded when it is known.

use std::sync::Arc;

use crate::error::{GraphNodeError, NodeResult, shapes};
use crate::lower::NodeLowering;
use crate::lowered_value::{FoldedInts, LoweredValue};
use crate::node_reader::{NodeReader, refuse};
use crate::operators::ElementKind;
use crate::operators::broadcast;
use crate::operators::layout::sizes;
use crate::proto::{FileTensor, TensorValues};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum IntegerOp {
    Shape { start: i64, end: Option<i64> },
    Size,
    Cast(CastTarget),
    ConstantOfShape(FillValue),
    Range,
    Equal,
    Where,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum CastTarget {
    Float,
    Int,
    Bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FillValue {
    Float(f32),
    Int(i64),
}

impl IntegerOp {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        let inputs = match reader.operator() {
            "Range" | "Where" => 3,
            "Equal" => 2,
            _ => 1,
        };
        reader.arity(inputs..=inputs, 1..=1)?;
        Ok(match reader.operator() {
            "Shape" if reader.opset >= 15 => {
                IntegerOp::Shape { start: reader.int("start")?.unwrap_or(0), end: reader.int("end")? }
            }
            "Shape" => IntegerOp::Shape { start: 0, end: None },
            "Size" => IntegerOp::Size,
            "Cast" => {
                reader.int("saturate")?;
                IntegerOp::Cast(match reader.int("to")? {
                    Some(1) => CastTarget::Float,
                    Some(6 | 7) => CastTarget::Int,
                    Some(9) => CastTarget::Bool,
                    other => {
                        return refuse(
                            "to",
                            format!("{other:?}; use 1 (float), 6, 7 (integers) or 9 (boolean)"),
                        );
                    }
                })
            }
            "ConstantOfShape" => IntegerOp::ConstantOfShape(match reader.tensor("value")? {
                None => FillValue::Float(0.0),
                Some(FileTensor { data: TensorValues::Float(values), .. }) if values.len() == 1 => {
                    FillValue::Float(values[0])
                }
                Some(FileTensor { data: TensorValues::Int(values), .. }) if values.len() == 1 => {
                    FillValue::Int(values[0])
                }
                Some(_) => return refuse("value", "must hold one element"),
            }),
            "Range" => IntegerOp::Range,
            "Equal" => IntegerOp::Equal,
            _ => IntegerOp::Where,
        })
    }

    pub(crate) fn kind(&self, inputs: &[Option<ElementKind>]) -> NodeResult<ElementKind> {
        let all_integers =
            |from: usize| match inputs.iter().skip(from).position(|k| *k != Some(ElementKind::Int)) {
                None => Ok(ElementKind::Int),
                Some(index) => Err(GraphNodeError::Input {
                    index: from + index,
                    why: "must be integers that follow from the input's shape alone".to_owned(),
                }),
            };
        match self {
            IntegerOp::Shape { .. } | IntegerOp::Size => Ok(ElementKind::Int),
            IntegerOp::Cast(CastTarget::Float) => Ok(ElementKind::Float),
            IntegerOp::ConstantOfShape(FillValue::Float(_)) => all_integers(0).map(|_| ElementKind::Float),
            _ => all_integers(0),
        }
    }

    pub(crate) fn lower(&self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        let known = match self {
            IntegerOp::Shape { start, end } => {
                let shape = node.known(0)?.shape();
                let rank = shape.len() as i64;
                let clamp = |v: i64| (if v < 0 { v.saturating_add(rank) } else { v }).clamp(0, rank) as usize;
                let (start, end) = (clamp(*start), clamp(end.unwrap_or(rank)));
                let data: Vec<i64> = shape[start..end.max(start)].iter().map(|&d| d as i64).collect();
                FoldedInts::new(vec![data.len()], data)?.into()
            }
            IntegerOp::Size => {
                let size = node.known(0)?.shape().iter().product::<usize>();
                FoldedInts::new(vec![], vec![size as i64])?.into()
            }
            IntegerOp::Cast(target) => match (target, node.known(0)?.clone()) {
                (CastTarget::Float, LoweredValue::Float(x)) => x.into(),
                (CastTarget::Float, LoweredValue::Int(x)) => {
                    let data: Arc<[f32]> = x.data.iter().map(|&v| v as f32).collect();
                    node.constant(x.shape, data)?.into()
                }
                (CastTarget::Int, LoweredValue::Int(x)) => x.into(),
                (CastTarget::Bool, LoweredValue::Int(mut x)) => {
                    x.data.iter_mut().for_each(|v| *v = i64::from(*v != 0));
                    x.into()
                }
                (_, LoweredValue::Float(_)) => {
                    return Err(GraphNodeError::Input {
                        index: 0,
                        why: "holds floats, expected integers".to_owned(),
                    });
                }
            },
            IntegerOp::ConstantOfShape(fill) => {
                let shape = sizes(&node.ints(0)?.data)?;
                match fill {
                    FillValue::Float(value) => node.filled(shape, *value)?.into(),
                    FillValue::Int(value) => FoldedInts::filled(shape, *value)?.into(),
                }
            }
            IntegerOp::Range => {
                let [start, limit, step] = [node.scalar(0)?, node.scalar(1)?, node.scalar(2)?];
                if step == 0 {
                    return shapes("a step of 0");
                }
                let count = ((limit as f64 - start as f64) / step as f64).ceil().max(0.0);
                FoldedInts::check(count as usize)?;
                let data: Vec<i64> =
                    (0..count as i64).map(|i| start.wrapping_add(i.wrapping_mul(step))).collect();
                FoldedInts::new(vec![data.len()], data)?.into()
            }
            IntegerOp::Equal => {
                broadcast::integers(&node.ints(0)?, &node.ints(1)?, |a, b| Some(i64::from(a == b)))?.into()
            }
            IntegerOp::Where => {
                let [condition, yes, no] = [node.ints(0)?, node.ints(1)?, node.ints(2)?];
                let shape = broadcast::shape(&broadcast::shape(&condition.shape, &yes.shape)?, &no.shape)?;
                let ones = FoldedInts::filled(shape, 1)?;
                let [condition, yes, no] =
                    [condition, yes, no].map(|v| broadcast::integers(&v, &ones, |a, _| Some(a)));
                let (mut out, yes, no) = (condition?, yes?, no?);
                for (i, value) in out.data.iter_mut().enumerate() {
                    *value = if *value != 0 { yes.data[i] } else { no.data[i] };
                }
                out.into()
            }
        };
        Ok(vec![known])
    }
}

/// All inputs floats, or all integers.
pub(crate) fn same_kind(inputs: &[Option<ElementKind>]) -> NodeResult<()> {
    match inputs.iter().position(|kind| *kind != inputs[0] || kind.is_none()) {
        None => Ok(()),
        Some(index) => {
            Err(GraphNodeError::Input { index, why: "is not of the same type as the first".to_owned() })
        }
    }
}
