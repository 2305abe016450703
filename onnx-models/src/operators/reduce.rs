//! Sums and means along axes.

use crate::error::{GraphNodeError, NodeResult};
use crate::kernel::Kernel;
use crate::lower::NodeLowering;
use crate::lowered_value::{FoldedInts, LoweredFloat, LoweredValue};
use crate::node_reader::NodeReader;
use crate::operators::{ElementKind, axis};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Reduction {
    Mean,
    Sum,
    /// On integers only: the number of elements of a shape.
    Product,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReduceOp {
    operation: Reduction,
    axes: Option<Vec<i64>>,
    keep: bool,
    /// No axes mean nothing is reduced, instead of everything.
    empty_is_identity: bool,
}

impl ReduceOp {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        let (operation, input_since) = match reader.operator() {
            "ReduceMean" => (Reduction::Mean, 18),
            "ReduceSum" => (Reduction::Sum, 13),
            _ => (Reduction::Product, 18),
        };
        let as_input = reader.opset >= input_since;
        reader.arity(1..=if as_input { 2 } else { 1 }, 1..=1)?;
        Ok(ReduceOp {
            operation,
            axes: if as_input { None } else { reader.ints("axes")?.map(<[i64]>::to_vec) },
            keep: reader.flag("keepdims", true)?,
            empty_is_identity: as_input && reader.flag("noop_with_empty_axes", false)?,
        })
    }

    pub(crate) fn kind(&self, input: ElementKind) -> NodeResult<ElementKind> {
        let expected =
            if self.operation == Reduction::Product { ElementKind::Int } else { ElementKind::Float };
        match input == expected {
            true => Ok(input),
            false => Err(GraphNodeError::Input {
                index: 0,
                why: format!("holds {input:?}s, expected {expected:?}s"),
            }),
        }
    }

    pub(crate) fn lower(&self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        let axes = match &self.axes {
            Some(axes) => Some(axes.clone()),
            None => node.ints_or_none(1)?.map(|axes| axes.data),
        };
        if let (Reduction::Product, LoweredValue::Int(x)) = (self.operation, node.known(0)?) {
            return self.product(x, axes.as_deref()).map(|product| vec![product.into()]);
        }
        let x = node.float(0)?;
        let axes = match axes.filter(|axes| !axes.is_empty()) {
            Some(axes) => {
                let mut axes =
                    axes.iter().map(|&a| axis(a, x.shape.len())).collect::<NodeResult<Vec<_>>>()?;
                axes.sort_unstable();
                axes.dedup();
                axes
            }
            None if self.empty_is_identity => return Ok(vec![x.into()]),
            None => (0..x.shape.len()).collect(),
        };
        let out = match self.operation {
            Reduction::Mean => node.mean(&x, &axes)?,
            _ => node.sum(&x, &axes)?,
        };
        if self.keep {
            return Ok(vec![out.into()]);
        }
        let shape = (0..x.shape.len()).filter(|i| !axes.contains(i)).map(|i| x.shape[i]).collect();
        Ok(vec![node.reshape(&out, shape)?.into()])
    }

    fn product(&self, x: &FoldedInts, axes: Option<&[i64]>) -> NodeResult<FoldedInts> {
        if x.shape.len() > 1 || axes.is_some_and(|axes| axes.iter().any(|&a| a != 0 && a != -1)) {
            return Err(GraphNodeError::Shapes(format!(
                "the product of a list is supported, not of {:?}",
                x.shape
            )));
        }
        let product = x.data.iter().try_fold(1i64, |product, &v| product.checked_mul(v));
        let product = product.ok_or_else(|| GraphNodeError::Shapes("an integer overflows".to_owned()))?;
        Ok(FoldedInts {
            shape: if self.keep { x.shape.iter().map(|_| 1).collect() } else { vec![] },
            data: vec![product],
        })
    }
}

impl NodeLowering<'_, '_> {
    /// The sum along sorted axes, which stay as dimensions of size 1.
    pub(crate) fn sum(&mut self, x: &LoweredFloat, axes: &[usize]) -> NodeResult<LoweredFloat> {
        self.reduce(Kernel::Sum(axes.to_vec()), x, axes)
    }

    /// The mean along sorted axes, which stay as dimensions of size 1.
    pub(crate) fn mean(&mut self, x: &LoweredFloat, axes: &[usize]) -> NodeResult<LoweredFloat> {
        self.reduce(Kernel::Mean(axes.to_vec()), x, axes)
    }

    fn reduce(&mut self, kernel: Kernel, x: &LoweredFloat, axes: &[usize]) -> NodeResult<LoweredFloat> {
        if axes.is_empty() {
            return Ok(x.clone());
        }
        let shape = x.shape.iter().enumerate().map(|(i, &d)| if axes.contains(&i) { 1 } else { d }).collect();
        self.emit(kernel, &[x], shape)
    }
}
