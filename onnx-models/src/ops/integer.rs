//! The arithmetic of shapes: integers and booleans that depend on nothing but the input's shape, folded when it is known.

use std::sync::Arc;

use crate::error::{NodeError, NodeResult, shapes};
use crate::lower::{Ints, Known, Node};
use crate::ops::Kind;
use crate::ops::broadcast;
use crate::ops::layout::sizes;
use crate::proto::{Data, Tensor};
use crate::reader::{Reader, refuse};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Integer {
    Shape { start: i64, end: Option<i64> },
    Size,
    Cast(Target),
    ConstantOfShape(Fill),
    Range,
    Equal,
    Where,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    Float,
    Int,
    Bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fill {
    Float(f32),
    Int(i64),
}

impl Integer {
    pub(crate) fn parse(reader: &Reader<'_>) -> NodeResult<Self> {
        let inputs = match reader.operator() {
            "Range" | "Where" => 3,
            "Equal" => 2,
            _ => 1,
        };
        reader.arity(inputs..=inputs, 1..=1)?;
        Ok(match reader.operator() {
            "Shape" if reader.opset >= 15 => {
                Integer::Shape { start: reader.int("start")?.unwrap_or(0), end: reader.int("end")? }
            }
            "Shape" => Integer::Shape { start: 0, end: None },
            "Size" => Integer::Size,
            "Cast" => {
                reader.int("saturate")?;
                Integer::Cast(match reader.int("to")? {
                    Some(1) => Target::Float,
                    Some(6 | 7) => Target::Int,
                    Some(9) => Target::Bool,
                    other => {
                        return refuse(
                            "to",
                            format!("{other:?}; use 1 (float), 6, 7 (integers) or 9 (boolean)"),
                        );
                    }
                })
            }
            "ConstantOfShape" => Integer::ConstantOfShape(match reader.tensor("value")? {
                None => Fill::Float(0.0),
                Some(Tensor { data: Data::Float(values), .. }) if values.len() == 1 => Fill::Float(values[0]),
                Some(Tensor { data: Data::Int(values), .. }) if values.len() == 1 => Fill::Int(values[0]),
                Some(_) => return refuse("value", "must hold one element"),
            }),
            "Range" => Integer::Range,
            "Equal" => Integer::Equal,
            _ => Integer::Where,
        })
    }

    pub(crate) fn kind(&self, inputs: &[Option<Kind>]) -> NodeResult<Kind> {
        let all_integers = |from: usize| match inputs.iter().skip(from).position(|k| *k != Some(Kind::Int)) {
            None => Ok(Kind::Int),
            Some(index) => Err(NodeError::Input {
                index: from + index,
                why: "must be integers that follow from the input's shape alone".to_owned(),
            }),
        };
        match self {
            Integer::Shape { .. } | Integer::Size => Ok(Kind::Int),
            Integer::Cast(Target::Float) => Ok(Kind::Float),
            Integer::ConstantOfShape(Fill::Float(_)) => all_integers(0).map(|_| Kind::Float),
            _ => all_integers(0),
        }
    }

    pub(crate) fn lower(&self, node: &mut Node<'_, '_>) -> NodeResult<Vec<Known>> {
        let known = match self {
            Integer::Shape { start, end } => {
                let shape = node.known(0)?.shape();
                let rank = shape.len() as i64;
                let clamp = |v: i64| (if v < 0 { v.saturating_add(rank) } else { v }).clamp(0, rank) as usize;
                let (start, end) = (clamp(*start), clamp(end.unwrap_or(rank)));
                let data: Vec<i64> = shape[start..end.max(start)].iter().map(|&d| d as i64).collect();
                Ints::new(vec![data.len()], data)?.into()
            }
            Integer::Size => {
                let size = node.known(0)?.shape().iter().product::<usize>();
                Ints::new(vec![], vec![size as i64])?.into()
            }
            Integer::Cast(target) => match (target, node.known(0)?.clone()) {
                (Target::Float, Known::Float(x)) => x.into(),
                (Target::Float, Known::Int(x)) => {
                    let data: Arc<[f32]> = x.data.iter().map(|&v| v as f32).collect();
                    node.constant(x.shape, data)?.into()
                }
                (Target::Int, Known::Int(x)) => x.into(),
                (Target::Bool, Known::Int(mut x)) => {
                    x.data.iter_mut().for_each(|v| *v = i64::from(*v != 0));
                    x.into()
                }
                (_, Known::Float(_)) => {
                    return Err(NodeError::Input {
                        index: 0,
                        why: "holds floats, expected integers".to_owned(),
                    });
                }
            },
            Integer::ConstantOfShape(fill) => {
                let shape = sizes(&node.ints(0)?.data)?;
                match fill {
                    Fill::Float(value) => node.filled(shape, *value)?.into(),
                    Fill::Int(value) => Ints::filled(shape, *value)?.into(),
                }
            }
            Integer::Range => {
                let [start, limit, step] = [node.scalar(0)?, node.scalar(1)?, node.scalar(2)?];
                if step == 0 {
                    return shapes("a step of 0");
                }
                let count = ((limit as f64 - start as f64) / step as f64).ceil().max(0.0);
                Ints::check(count as usize)?;
                let data: Vec<i64> =
                    (0..count as i64).map(|i| start.wrapping_add(i.wrapping_mul(step))).collect();
                Ints::new(vec![data.len()], data)?.into()
            }
            Integer::Equal => {
                broadcast::integers(&node.ints(0)?, &node.ints(1)?, |a, b| Some(i64::from(a == b)))?.into()
            }
            Integer::Where => {
                let [condition, yes, no] = [node.ints(0)?, node.ints(1)?, node.ints(2)?];
                let shape = broadcast::shape(&broadcast::shape(&condition.shape, &yes.shape)?, &no.shape)?;
                let ones = Ints::filled(shape, 1)?;
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
pub(crate) fn same_kind(inputs: &[Option<Kind>]) -> NodeResult<()> {
    match inputs.iter().position(|kind| *kind != inputs[0] || kind.is_none()) {
        None => Ok(()),
        Some(index) => {
            Err(NodeError::Input { index, why: "is not of the same type as the first".to_owned() })
        }
    }
}
