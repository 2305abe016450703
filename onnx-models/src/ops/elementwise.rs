//! Operators that treat each element alone, with broadcasting.

use std::sync::Arc;

use crate::error::{NodeError, NodeResult};
use crate::kernel::{self, Kernel};
use crate::lower::{Float, Ints, Known, Node};
use crate::ops::Kind;
use crate::ops::broadcast;
use crate::reader::Reader;

/// One input, one output of the same shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unary(pub(crate) kernel::Unary);

impl Unary {
    pub(crate) fn parse(reader: &Reader<'_>) -> NodeResult<Self> {
        reader.arity(1..=1, 1..=1)?;
        Ok(Unary(match reader.operator() {
            "Neg" => kernel::Unary::Neg,
            "Relu" => kernel::Unary::Relu,
            "LeakyRelu" => kernel::Unary::LeakyRelu(reader.float("alpha", 0.01)?),
            "Tanh" => kernel::Unary::Tanh,
            "Sigmoid" => kernel::Unary::Sigmoid,
            "Exp" => kernel::Unary::Exp,
            "Log" => kernel::Unary::Log,
            _ => kernel::Unary::Sqrt,
        }))
    }

    pub(crate) fn lower(self, node: &mut Node<'_, '_>) -> NodeResult<Vec<Known>> {
        if let (kernel::Unary::Neg, Known::Int(ints)) = (self.0, node.known(0)?) {
            let data = ints.data.iter().map(|v| v.checked_neg()).collect::<Option<_>>();
            let data = data.ok_or_else(|| NodeError::Shapes("an integer overflows".to_owned()))?;
            return Ok(vec![Known::Int(Ints { shape: ints.shape.clone(), data })]);
        }
        let x = node.float(0)?;
        Ok(vec![node.unary(self.0, &x)?.into()])
    }
}

/// Two inputs that are broadcast to one shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Binary(pub(crate) kernel::Binary);

impl Binary {
    pub(crate) fn parse(reader: &Reader<'_>) -> NodeResult<Self> {
        reader.arity(2..=2, 1..=1)?;
        Ok(Binary(match reader.operator() {
            "Add" => kernel::Binary::Add,
            "Sub" => kernel::Binary::Sub,
            "Mul" => kernel::Binary::Mul,
            "Div" => kernel::Binary::Div,
            _ => kernel::Binary::Pow,
        }))
    }

    pub(crate) fn kind(self, inputs: Kind) -> NodeResult<Kind> {
        match (self.0, inputs) {
            (kernel::Binary::Pow, Kind::Int) => {
                Err(NodeError::Input { index: 0, why: "holds integers, expected floats".to_owned() })
            }
            _ => Ok(inputs),
        }
    }

    pub(crate) fn lower(self, node: &mut Node<'_, '_>) -> NodeResult<Vec<Known>> {
        if let (Known::Int(a), Known::Int(b)) = (node.known(0)?, node.known(1)?) {
            return Ok(vec![broadcast::integers(a, b, |a, b| self.fold(a, b))?.into()]);
        }
        let (a, b) = (node.float(0)?, node.float(1)?);
        // A literal is a scalar operation: cheaper, and for Pow exact in the derivative.
        if let Some(value) = literal(&b).filter(|_| b.shape.len() <= a.shape.len()) {
            let kernel = match self.0 {
                kernel::Binary::Add => kernel::Unary::AddScalar(value),
                kernel::Binary::Sub => kernel::Unary::AddScalar(-value),
                kernel::Binary::Mul => kernel::Unary::MulScalar(value),
                kernel::Binary::Div => kernel::Unary::DivScalar(value),
                kernel::Binary::Pow => kernel::Unary::PowScalar(value),
            };
            return Ok(vec![node.unary(kernel, &a)?.into()]);
        }
        Ok(vec![node.binary(self.0, &a, &b)?.into()])
    }

    fn fold(self, a: i64, b: i64) -> Option<i64> {
        match self.0 {
            kernel::Binary::Add => a.checked_add(b),
            kernel::Binary::Sub => a.checked_sub(b),
            kernel::Binary::Mul => a.checked_mul(b),
            kernel::Binary::Div => a.checked_div(b),
            kernel::Binary::Pow => None,
        }
    }
}

fn literal(value: &Float) -> Option<f32> {
    match value.constant.as_deref() {
        Some(&[only]) => Some(only),
        _ => None,
    }
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
