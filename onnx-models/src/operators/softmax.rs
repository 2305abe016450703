//! Softmax and its logarithm.

use crate::error::NodeResult;
use crate::kernel::Kernel;
use crate::lower::NodeLowering;
use crate::lowered_value::LoweredValue;
use crate::node_reader::NodeReader;
use crate::operators::axis;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SoftmaxOp {
    axis: i64,
    log: bool,
    /// Before operator set 13 the axis splits the tensor into a matrix, and rows are normalised.
    flatten: bool,
}

impl SoftmaxOp {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        reader.arity(1..=1, 1..=1)?;
        let flatten = reader.opset < 13;
        let axis = reader.int("axis")?.unwrap_or(if flatten { 1 } else { -1 });
        Ok(SoftmaxOp { axis, log: reader.operator() == "LogSoftmax", flatten })
    }

    pub(crate) fn lower(&self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        let x = node.float(0)?;
        let axis = axis(self.axis, x.shape.len())?;
        let kernel = |dim| if self.log { Kernel::LogSoftmax(dim) } else { Kernel::Softmax(dim) };
        if !self.flatten {
            return Ok(vec![node.emit(kernel(axis), &[&x], x.shape.clone())?.into()]);
        }
        let matrix = vec![x.shape[..axis].iter().product(), x.shape[axis..].iter().product()];
        let flat = node.reshape(&x, matrix.clone())?;
        let out = node.emit(kernel(1), &[&flat], matrix)?;
        Ok(vec![node.reshape(&out, x.shape)?.into()])
    }
}
