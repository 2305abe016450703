//! Matrix products.

use crate::error::{NodeResult, shapes};
use crate::kernel::{self, Kernel};
use crate::lower::NodeLowering;
use crate::lowered_value::{LoweredFloat, LoweredValue};
use crate::node_reader::NodeReader;
use crate::operators::broadcast;

/// α·A'·B' + β·C, where ' transposes if asked to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GemmOp {
    alpha: f32,
    beta: f32,
    transpose_a: bool,
    transpose_b: bool,
}

impl GemmOp {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        reader.arity(2..=3, 1..=1)?;
        Ok(GemmOp {
            alpha: reader.float("alpha", 1.0)?,
            beta: reader.float("beta", 1.0)?,
            transpose_a: reader.flag("transA", false)?,
            transpose_b: reader.flag("transB", false)?,
        })
    }

    pub(crate) fn lower(&self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        let (mut a, mut b, c) = (node.float(0)?, node.float(1)?, node.float_or_none(2)?);
        if a.shape.len() != 2 || b.shape.len() != 2 {
            return shapes(format!("{:?} and {:?} are not matrices", a.shape, b.shape));
        }
        if self.transpose_a {
            a = node.permute(&a, vec![1, 0])?;
        }
        let (depth, columns) =
            if self.transpose_b { (b.shape[1], b.shape[0]) } else { (b.shape[0], b.shape[1]) };
        if a.shape[1] != depth {
            return shapes(format!("{:?} × [{depth}, {columns}]", a.shape));
        }
        let shape = vec![a.shape[0], columns];
        let c = match c {
            Some(c) if broadcast::shape(&shape, &c.shape).as_ref() != Ok(&shape) => {
                return shapes(format!("{:?} does not broadcast to {shape:?}", c.shape));
            }
            Some(c) if self.beta != 1.0 => Some(node.unary(kernel::UnaryKernel::MulScalar(self.beta), &c)?),
            other => other,
        };
        match c {
            Some(c) if self.alpha == 1.0 && c.shape == [shape[1]] => {
                let kernel = Kernel::Linear { transposed: self.transpose_b };
                Ok(vec![node.emit(kernel, &[&a, &b, &c], shape)?.into()])
            }
            c => {
                if self.transpose_b {
                    b = node.permute(&b, vec![1, 0])?;
                }
                let mut out = node.emit(Kernel::MatMul, &[&a, &b], shape)?;
                if self.alpha != 1.0 {
                    out = node.unary(kernel::UnaryKernel::MulScalar(self.alpha), &out)?;
                }
                if let Some(c) = c {
                    out = node.binary(kernel::BinaryKernel::Add, &out, &c)?;
                }
                Ok(vec![out.into()])
            }
        }
    }
}

/// numpy's matmul: vectors are promoted, leading dimensions broadcast.
pub(crate) fn lower(node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
    let (a, b) = (node.float(0)?, node.float(1)?);
    if a.shape.is_empty() || b.shape.is_empty() {
        return shapes("a scalar has no matrix product");
    }
    let (row, column) = (a.shape.len() == 1, b.shape.len() == 1);
    let a = if row { node.raise(&a, 2)? } else { a };
    let b = if column { node.reshape(&b, vec![b.shape[0], 1])? } else { b };
    let mut out = product(node, &a, &b)?;
    if row || column {
        let mut shape = out.shape.clone();
        let last = shape.len() - 1;
        if column {
            shape.remove(last);
        }
        if row {
            shape.remove(last - 1);
        }
        out = node.reshape(&out, shape)?;
    }
    Ok(vec![out.into()])
}

fn product(node: &mut NodeLowering<'_, '_>, a: &LoweredFloat, b: &LoweredFloat) -> NodeResult<LoweredFloat> {
    let (ra, rb) = (a.shape.len(), b.shape.len());
    let (m, k, n) = (a.shape[ra - 2], a.shape[ra - 1], b.shape[rb - 1]);
    if k != b.shape[rb - 2] {
        return shapes(format!("{:?} × {:?}", a.shape, b.shape));
    }
    // One matrix shared by a batch is one large product.
    if rb == 2 && ra > 2 {
        let rows = a.shape[..ra - 1].iter().product();
        let flat = node.reshape(a, vec![rows, k])?;
        let out = node.emit(Kernel::MatMul, &[&flat, b], vec![rows, n])?;
        let mut shape = a.shape.clone();
        shape[ra - 1] = n;
        return node.reshape(&out, shape);
    }
    let mut shape = broadcast::shape(&a.shape[..ra - 2], &b.shape[..rb - 2])?;
    shape.extend([m, n]);
    let (a, b) = (node.raise(a, shape.len())?, node.raise(b, shape.len())?);
    node.emit(Kernel::MatMul, &[&a, &b], shape)
}
