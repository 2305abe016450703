//! Broadcasting as in numpy: dimensions align from the right, and size 1 is repeated.

use crate::error::{GraphNodeError, NodeResult, shapes};
use crate::kernel::{self, Kernel};
use crate::lower::NodeLowering;
use crate::lowered_value::{FoldedInts, LoweredFloat};

/// The shape that two shapes broadcast to.
pub(crate) fn shape(a: &[usize], b: &[usize]) -> NodeResult<Vec<usize>> {
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

/// An element-wise operation on integers, with broadcasting; `None` is an overflow or a division by zero.
pub(crate) fn integers(
    a: &FoldedInts,
    b: &FoldedInts,
    f: impl Fn(i64, i64) -> Option<i64>,
) -> NodeResult<FoldedInts> {
    let shape = shape(&a.shape, &b.shape)?;
    let elements = FoldedInts::filled(shape.clone(), 0)?.data.len();
    let index = |ints: &FoldedInts, mut flat: usize| {
        let (mut offset, mut stride) = (0, 1);
        for i in 0..shape.len() {
            let place = shape.len() - 1 - i;
            let coordinate = flat % shape[place];
            flat /= shape[place];
            if let Some(own) = (ints.shape.len()).checked_sub(i + 1) {
                if ints.shape[own] != 1 {
                    offset += coordinate * stride;
                }
                stride *= ints.shape[own];
            }
        }
        offset
    };
    let value = |i| f(a.data[index(a, i)], b.data[index(b, i)]);
    let data = (0..elements).map(value).collect::<Option<Vec<_>>>();
    let data =
        data.ok_or_else(|| GraphNodeError::Shapes("an integer overflows or is divided by zero".to_owned()))?;
    FoldedInts::new(shape, data)
}

impl NodeLowering<'_, '_> {
    /// An element-wise operation on operands of any ranks that broadcast.
    pub(crate) fn binary(
        &mut self,
        kernel: kernel::BinaryKernel,
        a: &LoweredFloat,
        b: &LoweredFloat,
    ) -> NodeResult<LoweredFloat> {
        let shape = shape(&a.shape, &b.shape)?;
        let (a, b) = (self.raise(a, shape.len())?, self.raise(b, shape.len())?);
        self.emit(Kernel::Binary(kernel), &[&a, &b], shape)
    }

    /// Leading dimensions of size 1 until the rank is reached.
    pub(crate) fn raise(&mut self, x: &LoweredFloat, rank: usize) -> NodeResult<LoweredFloat> {
        if x.shape.len() >= rank {
            return Ok(x.clone());
        }
        let mut shape = vec![1; rank - x.shape.len()];
        shape.extend(&x.shape);
        self.reshape(x, shape)
    }
}
