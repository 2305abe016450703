//! Element-wise operators, with broadcasting.

use std::sync::Arc;

use crate::error::{GraphNodeError, NodeResult};
use crate::kernel::{self, Kernel};
use crate::lower::NodeLowering;
use crate::lowered_value::{FoldedInts, LoweredFloat, LoweredValue};
use crate::node_reader::NodeReader;
use crate::operators::ElementKind;
use crate::operators::broadcast;

/// One input, one output of the same shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UnaryOp(pub(crate) kernel::UnaryKernel);

impl UnaryOp {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        reader.arity(1..=1, 1..=1)?;
        Ok(UnaryOp(match reader.operator() {
            "Neg" => kernel::UnaryKernel::Neg,
            "Relu" => kernel::UnaryKernel::Relu,
            "LeakyRelu" => kernel::UnaryKernel::LeakyRelu(reader.float("alpha", 0.01)?),
            "Tanh" => kernel::UnaryKernel::Tanh,
            "Sigmoid" => kernel::UnaryKernel::Sigmoid,
            "Exp" => kernel::UnaryKernel::Exp,
            "Log" => kernel::UnaryKernel::Log,
            _ => kernel::UnaryKernel::Sqrt,
        }))
    }

    pub(crate) fn lower(self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        if let (kernel::UnaryKernel::Neg, LoweredValue::Int(ints)) = (self.0, node.known(0)?) {
            let data = ints.data.iter().map(|v| v.checked_neg()).collect::<Option<_>>();
            let data = data.ok_or_else(|| GraphNodeError::Shapes("an integer overflows".to_owned()))?;
            return Ok(vec![LoweredValue::Int(FoldedInts { shape: ints.shape.clone(), data })]);
        }
        let x = node.float(0)?;
        Ok(vec![node.unary(self.0, &x)?.into()])
    }
}

/// Two inputs that are broadcast to one shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BinaryOp(pub(crate) kernel::BinaryKernel);

impl BinaryOp {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        reader.arity(2..=2, 1..=1)?;
        Ok(BinaryOp(match reader.operator() {
            "Add" => kernel::BinaryKernel::Add,
            "Sub" => kernel::BinaryKernel::Sub,
            "Mul" => kernel::BinaryKernel::Mul,
            "Div" => kernel::BinaryKernel::Div,
            _ => kernel::BinaryKernel::Pow,
        }))
    }

    pub(crate) fn kind(self, inputs: ElementKind) -> NodeResult<ElementKind> {
        match (self.0, inputs) {
            (kernel::BinaryKernel::Pow, ElementKind::Int) => {
                Err(GraphNodeError::Input { index: 0, why: "holds integers, expected floats".to_owned() })
            }
            _ => Ok(inputs),
        }
    }

    pub(crate) fn lower(self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        if let (LoweredValue::Int(a), LoweredValue::Int(b)) = (node.known(0)?, node.known(1)?) {
            return Ok(vec![broadcast::integers(a, b, |a, b| self.fold(a, b))?.into()]);
        }
        let (a, b) = (node.float(0)?, node.float(1)?);
        // A literal is a scalar operation: cheaper, and for Pow exact in the derivative.
        if let Some(value) = literal(&b).filter(|_| b.shape.len() <= a.shape.len()) {
            let kernel = match self.0 {
                kernel::BinaryKernel::Add => kernel::UnaryKernel::AddScalar(value),
                kernel::BinaryKernel::Sub => kernel::UnaryKernel::AddScalar(-value),
                kernel::BinaryKernel::Mul => kernel::UnaryKernel::MulScalar(value),
                kernel::BinaryKernel::Div => kernel::UnaryKernel::DivScalar(value),
                kernel::BinaryKernel::Pow => kernel::UnaryKernel::PowScalar(value),
            };
            return Ok(vec![node.unary(kernel, &a)?.into()]);
        }
        Ok(vec![node.binary(self.0, &a, &b)?.into()])
    }

    fn fold(self, a: i64, b: i64) -> Option<i64> {
        match self.0 {
            kernel::BinaryKernel::Add => a.checked_add(b),
            kernel::BinaryKernel::Sub => a.checked_sub(b),
            kernel::BinaryKernel::Mul => a.checked_mul(b),
            kernel::BinaryKernel::Div => a.checked_div(b),
            kernel::BinaryKernel::Pow => None,
        }
    }
}

fn literal(value: &LoweredFloat) -> Option<f32> {
    match value.constant.as_deref() {
        Some(&[only]) => Some(only),
        _ => None,
    }
}

/// Bounds, from attributes (opset 6) or inputs (opset 11 and on).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ClipOp;

impl ClipOp {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        reader.arity(1..=3, 1..=1)?;
        Ok(ClipOp)
    }

    pub(crate) fn lower(self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        let x = node.float(0)?;
        let bound = |index, default| match node.float_or_none(index)? {
            None => Ok(default),
            Some(bound) => match literal(&bound) {
                Some(value) => Ok(value),
                None => Err(GraphNodeError::Input { index, why: "must be a constant scalar".to_owned() }),
            },
        };
        let (min, max) = (bound(1, f32::MIN)?, bound(2, f32::MAX)?);
        Ok(vec![node.unary(kernel::UnaryKernel::Clamp { min, max }, &x)?.into()])
    }
}

impl NodeLowering<'_, '_> {
    pub(crate) fn unary(
        &mut self,
        kernel: kernel::UnaryKernel,
        x: &LoweredFloat,
    ) -> NodeResult<LoweredFloat> {
        self.emit(Kernel::Unary(kernel), &[x], x.shape.clone())
    }

    pub(crate) fn reshape(&mut self, x: &LoweredFloat, shape: Vec<usize>) -> NodeResult<LoweredFloat> {
        if x.shape == shape {
            return Ok(x.clone());
        }
        let constant: Option<Arc<[f32]>> = x.constant.clone();
        let mut out = self.emit(Kernel::Reshape(shape.clone()), &[x], shape)?;
        out.constant = constant;
        Ok(out)
    }
}
