//! Operators that treat each element alone, with broadcasting.

use std::sync::Arc;

use crate::error::{NodeError, NodeResult, shapes};
use crate::kernel::{self, Kernel};
use crate::lower::{Float, Ints, Known, Node};
use crate::ops::Kind;
use crate::ops::integer;
use crate::reader::Reader;

/// One input, one output of the same shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unary {
    Neg,
    Relu,
    LeakyRelu(f32),
    Tanh,
    Sigmoid,
    Exp,
    Log,
    Sqrt,
}

impl Unary {
    pub(crate) fn parse(reader: &Reader<'_>) -> NodeResult<Self> {
        reader.arity(1..=1, 1..=1)?;
        Ok(match reader.operator() {
            "Neg" => Unary::Neg,
            "Relu" => Unary::Relu,
            "LeakyRelu" => Unary::LeakyRelu(reader.float("alpha", 0.01)?),
            "Tanh" => Unary::Tanh,
            "Sigmoid" => Unary::Sigmoid,
            "Exp" => Unary::Exp,
            "Log" => Unary::Log,
            _ => Unary::Sqrt,
        })
    }

    pub(crate) fn lower(self, node: &mut Node<'_, '_>) -> NodeResult<Vec<Known>> {
        if let (Unary::Neg, Known::Int(ints)) = (self, node.known(0)?) {
            let data = ints.data.iter().map(|v| v.checked_neg()).collect::<Option<_>>();
            let data = data.ok_or_else(|| NodeError::Shapes("an integer overflows".to_owned()))?;
            return Ok(vec![Known::Int(Ints { shape: ints.shape.clone(), data })]);
        }
        let x = node.float(0)?;
        let kernel = match self {
            Unary::Neg => kernel::Unary::Neg,
            Unary::Relu => kernel::Unary::Relu,
            Unary::LeakyRelu(slope) => kernel::Unary::LeakyRelu(slope),
            Unary::Tanh => kernel::Unary::Tanh,
            Unary::Sigmoid => kernel::Unary::Sigmoid,
            Unary::Exp => kernel::Unary::Exp,
            Unary::Log => kernel::Unary::Log,
            Unary::Sqrt => kernel::Unary::Sqrt,
        };
        Ok(vec![node.unary(kernel, &x)?.into()])
    }
}

/// Two inputs that are broadcast to one shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
}

impl Binary {
    pub(crate) fn parse(reader: &Reader<'_>) -> NodeResult<Self> {
        reader.arity(2..=2, 1..=1)?;
        Ok(match reader.operator() {
            "Add" => Binary::Add,
            "Sub" => Binary::Sub,
            "Mul" => Binary::Mul,
            "Div" => Binary::Div,
            _ => Binary::Pow,
        })
    }

    pub(crate) fn kind(self, inputs: Kind) -> NodeResult<Kind> {
        match (self, inputs) {
            (Binary::Pow, Kind::Int) => {
                Err(NodeError::Input { index: 0, why: "holds integers, expected floats".to_owned() })
            }
            _ => Ok(inputs),
        }
    }

    pub(crate) fn lower(self, node: &mut Node<'_, '_>) -> NodeResult<Vec<Known>> {
        if let (Known::Int(a), Known::Int(b)) = (node.known(0)?, node.known(1)?) {
            return Ok(vec![integer::broadcast(a, b, |a, b| self.fold(a, b))?.into()]);
        }
        let (a, b) = (node.float(0)?, node.float(1)?);
        // A literal is a scalar operation: cheaper, and for Pow exact in the derivative.
        if let Some(value) = literal(&b).filter(|_| b.shape.len() <= a.shape.len()) {
            let kernel = match self {
                Binary::Add => kernel::Unary::AddScalar(value),
                Binary::Sub => kernel::Unary::AddScalar(-value),
                Binary::Mul => kernel::Unary::MulScalar(value),
                Binary::Div => kernel::Unary::DivScalar(value),
                Binary::Pow => kernel::Unary::PowScalar(value),
            };
            return Ok(vec![node.unary(kernel, &a)?.into()]);
        }
        let kernel = match self {
            Binary::Add => kernel::Binary::Add,
            Binary::Sub => kernel::Binary::Sub,
            Binary::Mul => kernel::Binary::Mul,
            Binary::Div => kernel::Binary::Div,
            Binary::Pow => kernel::Binary::Pow,
        };
        Ok(vec![node.binary(kernel, &a, &b)?.into()])
    }

    fn fold(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Binary::Add => a.checked_add(b),
            Binary::Sub => a.checked_sub(b),
            Binary::Mul => a.checked_mul(b),
            Binary::Div => a.checked_div(b),
            Binary::Pow => None,
        }
    }
}

fn literal(value: &Float) -> Option<f32> {
    match value.constant.as_deref() {
        Some(&[only]) => Some(only),
        _ => None,
    }
}

/// The shape two shapes broadcast to.
pub(crate) fn broadcast_shape(a: &[usize], b: &[usize]) -> NodeResult<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |shape: &[usize], i: usize| (i + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
    let dimension = |i| match (at(a, i), at(b, i)) {
        (m, n) if m == n => Ok(m),
        (1, n) => Ok(n),
        (m, 1) => Ok(m),
        _ => shapes(format!("{a:?} and {b:?} do not broadcast")),
    };
    (0..rank).map(dimension).collect()
}

/// Bounds, from attributes (opset 6) or inputs (opset 11 and on).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Clip;

impl Clip {
    pub(crate) fn parse(reader: &Reader<'_>) -> NodeResult<Self> {
        reader.arity(1..=3, 1..=1)?;
        Ok(Clip)
    }

    pub(crate) fn lower(self, node: &mut Node<'_, '_>) -> NodeResult<Vec<Known>> {
        let x = node.float(0)?;
        let bound = |index, default| match node.float_or_none(index)? {
            None => Ok(default),
            Some(bound) => match literal(&bound) {
                Some(value) => Ok(value),
                None => Err(NodeError::Input { index, why: "must be a constant scalar".to_owned() }),
            },
        };
        let (min, max) = (bound(1, f32::MIN)?, bound(2, f32::MAX)?);
        Ok(vec![node.unary(kernel::Unary::Clamp { min, max }, &x)?.into()])
    }
}

impl Node<'_, '_> {
    pub(crate) fn unary(&mut self, kernel: kernel::Unary, x: &Float) -> NodeResult<Float> {
        self.emit(Kernel::Unary(kernel), &[x], x.shape.clone())
    }

    /// An element-wise operation on operands of any ranks that broadcast.
    pub(crate) fn binary(&mut self, kernel: kernel::Binary, a: &Float, b: &Float) -> NodeResult<Float> {
        let shape = broadcast_shape(&a.shape, &b.shape)?;
        let (a, b) = (self.raise(a, shape.len())?, self.raise(b, shape.len())?);
        self.emit(Kernel::Binary(kernel), &[&a, &b], shape)
    }

    /// Leading dimensions of size 1 until the rank is reached.
    pub(crate) fn raise(&mut self, x: &Float, rank: usize) -> NodeResult<Float> {
        if x.shape.len() >= rank {
            return Ok(x.clone());
        }
        let mut shape = vec![1; rank - x.shape.len()];
        shape.extend(&x.shape);
        self.reshape(x, shape)
    }

    pub(crate) fn reshape(&mut self, x: &Float, shape: Vec<usize>) -> NodeResult<Float> {
        if x.shape == shape {
            return Ok(x.clone());
        }
        let constant: Option<Arc<[f32]>> = x.constant.clone();
        let mut out = self.emit(Kernel::Reshape(shape.clone()), &[x], shape)?;
        out.constant = constant;
        Ok(out)
    }
}
