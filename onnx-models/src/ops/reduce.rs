//! Sums and means along axes.

use crate::error::{NodeError, NodeResult};
use crate::kernel::Kernel;
use crate::lower::{Float, Ints, Known, Node};
use crate::ops::{Kind, axis};
use crate::reader::Reader;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Operation {
    Mean,
    Sum,
    /// On integers only: the number of elements of a shape.
    Product,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reduce {
    operation: Operation,
    axes: Option<Vec<i64>>,
    keep: bool,
    /// No axes mean nothing is reduced, instead of everything.
    empty_is_identity: bool,
}

impl Reduce {
    pub(crate) fn parse(reader: &Reader<'_>) -> NodeResult<Self> {
        let (operation, input_since) = match reader.operator() {
            "ReduceMean" => (Operation::Mean, 18),
            "ReduceSum" => (Operation::Sum, 13),
            _ => (Operation::Product, 18),
        };
        let as_input = reader.opset >= input_since;
        reader.arity(1..=if as_input { 2 } else { 1 }, 1..=1)?;
        Ok(Reduce {
            operation,
            axes: if as_input { None } else { reader.ints("axes")?.map(<[i64]>::to_vec) },
            keep: reader.flag("keepdims", true)?,
            empty_is_identity: as_input && reader.flag("noop_with_empty_axes", false)?,
        })
    }

    pub(crate) fn kind(&self, input: Kind) -> NodeResult<Kind> {
        let expected = if self.operation == Operation::Product { Kind::Int } else { Kind::Float };
        match input == expected {
            true => Ok(input),
            false => {
                Err(NodeError::Input { index: 0, why: format!("holds {input:?}s, expected {expected:?}s") })
            }
        }
    }

    pub(crate) fn lower(&self, node: &mut Node<'_, '_>) -> NodeResult<Vec<Known>> {
        let axes = match &self.axes {
            Some(axes) => Some(axes.clone()),
            None => node.ints_or_none(1)?.map(|axes| axes.data),
        };
        if let (Operation::Product, Known::Int(x)) = (self.operation, node.known(0)?) {
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
            Operation::Mean => node.mean(&x, &axes)?,
            _ => node.sum(&x, &axes)?,
        };
        if self.keep {
            return Ok(vec![out.into()]);
        }
        let shape = (0..x.shape.len()).filter(|i| !axes.contains(i)).map(|i| x.shape[i]).collect();
        Ok(vec![node.reshape(&out, shape)?.into()])
    }

    fn product(&self, x: &Ints, axes: Option<&[i64]>) -> NodeResult<Ints> {
        if x.shape.len() > 1 || axes.is_some_and(|axes| axes.iter().any(|&a| a != 0 && a != -1)) {
            return Err(NodeError::Shapes(format!(
                "the product of a list is supported, not of {:?}",
                x.shape
            )));
        }
        let product = x.data.iter().try_fold(1i64, |product, &v| product.checked_mul(v));
        let product = product.ok_or_else(|| NodeError::Shapes("an integer overflows".to_owned()))?;
        Ok(Ints {
            shape: if self.keep { x.shape.iter().map(|_| 1).collect() } else { vec![] },
            data: vec![product],
        })
    }
}

impl Node<'_, '_> {
    /// The sum along sorted axes, which stay as dimensions of size 1.
    pub(crate) fn sum(&mut self, x: &Float, axes: &[usize]) -> NodeResult<Float> {
        self.reduce(Kernel::Sum(axes.to_vec()), x, axes)
    }

    /// The mean along sorted axes, which stay as dimensions of size 1.
    pub(crate) fn mean(&mut self, x: &Float, axes: &[usize]) -> NodeResult<Float> {
        self.reduce(Kernel::Mean(axes.to_vec()), x, axes)
    }

    fn reduce(&mut self, kernel: Kernel, x: &Float, axes: &[usize]) -> NodeResult<Float> {
        if axes.is_empty() {
            return Ok(x.clone());
        }
        let shape = x.shape.iter().enumerate().map(|(i, &d)| if axes.contains(&i) { 1 } else { d }).collect();
        self.emit(kernel, &[x], shape)
    }
}
