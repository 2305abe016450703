//! Operators that move values without computing: on floats they become views and copies, on integers they are folded.

use crate::error::{GraphNodeError, NodeResult, shapes};
use crate::kernel::Kernel;
use crate::lower::NodeLowering;
use crate::lowered_value::{FoldedInts, LoweredFloat, LoweredValue};
use crate::node_reader::{NodeReader, refuse};
use crate::operators::axis;
use crate::operators::broadcast;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LayoutOp {
    Identity,
    Flatten { axis: i64 },
    Reshape { allow_zero: bool },
    Transpose { perm: Option<Vec<i64>> },
    Squeeze { axes: Option<Vec<i64>> },
    Unsqueeze { axes: Option<Vec<i64>> },
    Concat { axis: i64 },
    Slice,
    Gather { axis: i64 },
    Split { axis: i64, sizes: Option<Vec<i64>>, parts: usize },
    Expand,
}

impl LayoutOp {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        let axes = |max| {
            if reader.opset >= 13 {
                reader.arity(1..=max, 1..=1)?;
                return Ok(None);
            }
            reader.arity(1..=1, 1..=1)?;
            Ok(reader.ints("axes")?.map(<[i64]>::to_vec))
        };
        match reader.operator() {
            "Identity" => {
                reader.arity(1..=1, 1..=1)?;
                Ok(LayoutOp::Identity)
            }
            "Flatten" => {
                reader.arity(1..=1, 1..=1)?;
                Ok(LayoutOp::Flatten { axis: reader.int("axis")?.unwrap_or(1) })
            }
            "Reshape" => {
                reader.arity(2..=2, 1..=1)?;
                Ok(LayoutOp::Reshape { allow_zero: reader.flag("allowzero", false)? })
            }
            "Transpose" => {
                reader.arity(1..=1, 1..=1)?;
                Ok(LayoutOp::Transpose { perm: reader.ints("perm")?.map(<[i64]>::to_vec) })
            }
            "Squeeze" => Ok(LayoutOp::Squeeze { axes: axes(2)? }),
            "Unsqueeze" => Ok(LayoutOp::Unsqueeze { axes: axes(2)? }),
            "Concat" => {
                reader.arity(1..=usize::MAX, 1..=1)?;
                match reader.int("axis")? {
                    Some(axis) => Ok(LayoutOp::Concat { axis }),
                    None => refuse("axis", "is missing"),
                }
            }
            "Slice" => {
                reader.arity(3..=5, 1..=1)?;
                Ok(LayoutOp::Slice)
            }
            "Gather" => {
                reader.arity(2..=2, 1..=1)?;
                Ok(LayoutOp::Gather { axis: reader.int("axis")?.unwrap_or(0) })
            }
            "Split" => {
                let as_input = reader.opset >= 13;
                reader.arity(1..=if as_input { 2 } else { 1 }, 1..=usize::MAX)?;
                if reader.opset >= 18
                    && let Some(parts) = reader.int("num_outputs")?
                    && parts != reader.outputs() as i64
                {
                    return refuse(
                        "num_outputs",
                        format!("{parts}, but the node has {} outputs", reader.outputs()),
                    );
                }
                Ok(LayoutOp::Split {
                    axis: reader.int("axis")?.unwrap_or(0),
                    sizes: if as_input { None } else { reader.ints("split")?.map(<[i64]>::to_vec) },
                    parts: reader.outputs(),
                })
            }
            _ => {
                reader.arity(2..=2, 1..=1)?;
                Ok(LayoutOp::Expand)
            }
        }
    }

    pub(crate) fn lower(&self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        let x = node.known(0)?.clone();
        let shape = x.shape().to_vec();
        let rank = shape.len();
        match self {
            LayoutOp::Identity => Ok(vec![x]),
            LayoutOp::Flatten { axis: a } => {
                // The axis may equal the rank: one column.
                let a = if *a == rank as i64 { rank } else { axis(*a, rank)? };
                let matrix = vec![shape[..a].iter().product(), shape[a..].iter().product()];
                Ok(vec![node.reshaped(&x, matrix)?])
            }
            LayoutOp::Reshape { allow_zero } => {
                let wanted = node.ints(1)?;
                Ok(vec![node.reshaped(&x, resolve(&shape, &wanted.data, *allow_zero)?)?])
            }
            LayoutOp::Squeeze { axes } => {
                let axes = match node.axes(axes, rank)? {
                    Some(axes) => axes,
                    None => (0..rank).filter(|&i| shape[i] == 1).collect(),
                };
                if let Some(&bad) = axes.iter().find(|&&i| shape[i] != 1) {
                    return shapes(format!("dimension {bad} of {shape:?} is not 1"));
                }
                let remaining = (0..rank).filter(|i| !axes.contains(i)).map(|i| shape[i]).collect();
                Ok(vec![node.reshaped(&x, remaining)?])
            }
            LayoutOp::Unsqueeze { axes } => {
                let count = match axes {
                    Some(axes) => axes.len(),
                    None => node.ints(1)?.data.len(),
                };
                let Some(axes) = node.axes(axes, rank + count)? else { return shapes("no axes are given") };
                if axes.len() != count {
                    return shapes(format!("axes {axes:?} repeat"));
                }
                let mut old = shape.iter();
                let raised =
                    (0..rank + count).map(|i| if axes.contains(&i) { 1 } else { *old.next().unwrap_or(&1) });
                Ok(vec![node.reshaped(&x, raised.collect())?])
            }
            LayoutOp::Transpose { perm } => {
                let perm = match perm {
                    None => (0..rank).rev().collect(),
                    Some(perm) => {
                        let perm = perm.iter().map(|&a| axis(a, rank)).collect::<NodeResult<Vec<_>>>()?;
                        let mut sorted = perm.clone();
                        sorted.sort_unstable();
                        if sorted != (0..rank).collect::<Vec<_>>() {
                            return shapes(format!("perm {perm:?} of {rank} dimensions"));
                        }
                        perm
                    }
                };
                match &x {
                    LoweredValue::Float(x) => Ok(vec![node.permute(x, perm)?.into()]),
                    LoweredValue::Int(x) if rank < 2 => Ok(vec![x.clone().into()]),
                    LoweredValue::Int(_) => shapes("transposing integers is not supported"),
                }
            }
            LayoutOp::Concat { axis: a } => concat(node, *a),
            LayoutOp::Slice => slice(node, x),
            LayoutOp::Gather { axis: a } => {
                let indices = node.ints(1)?;
                let a = axis(*a, rank)?;
                let size = shape[a];
                let index = |&i: &i64| match if i < 0 { i.saturating_add(size as i64) } else { i } {
                    i if (0..size as i64).contains(&i) => Ok(i as usize),
                    _ => shapes(format!("index {i} of {size}")),
                };
                let flat = indices.data.iter().map(index).collect::<NodeResult<Vec<_>>>()?;
                let mut wanted = shape[..a].to_vec();
                wanted.extend(&indices.shape);
                wanted.extend(&shape[a + 1..]);
                let selected = node.select(&x, a, flat)?;
                Ok(vec![node.reshaped(&selected, wanted)?])
            }
            LayoutOp::Split { axis: a, sizes, parts } => {
                let a = axis(*a, rank)?;
                let sizes = match sizes {
                    Some(sizes) => Some(sizes.clone()),
                    None => node.ints_or_none(1)?.map(|sizes| sizes.data),
                };
                let sizes = match sizes {
                    Some(sizes) => sizes.iter().map(|&s| usize::try_from(s).ok()).collect::<Option<Vec<_>>>(),
                    None => {
                        let each = shape[a].div_ceil(*parts);
                        (0..*parts)
                            .map(|i| shape[a].checked_sub(i * each).map(|left| left.min(each)))
                            .collect()
                    }
                };
                let total = sizes.iter().flatten().try_fold(0usize, |sum, &size| sum.checked_add(size));
                let sizes = match sizes {
                    Some(sizes) if sizes.len() == *parts && total == Some(shape[a]) => sizes,
                    sizes => {
                        return shapes(format!(
                            "{sizes:?} do not split dimension {a} of {shape:?} in {parts}"
                        ));
                    }
                };
                let mut start = 0;
                let part = |size: usize| {
                    start += size;
                    node.range(&x, a, start - size, start)
                };
                sizes.into_iter().map(part).collect()
            }
            LayoutOp::Expand => {
                let wanted = sizes(&node.ints(1)?.data)?;
                let target = broadcast::shape(&shape, &wanted)?;
                match &x {
                    LoweredValue::Float(x) if x.shape == target => Ok(vec![x.clone().into()]),
                    LoweredValue::Float(x) => {
                        let raised = node.raise(x, target.len())?;
                        let mut out = node.emit(Kernel::Expand(target.clone()), &[&raised], target)?;
                        out.constant = None;
                        Ok(vec![out.into()])
                    }
                    LoweredValue::Int(x) => {
                        let ones = FoldedInts::filled(target, 1)?;
                        Ok(vec![broadcast::integers(x, &ones, |a, _| Some(a))?.into()])
                    }
                }
            }
        }
    }
}

/// Sizes that must not be negative.
pub(crate) fn sizes(values: &[i64]) -> NodeResult<Vec<usize>> {
    let size =
        |&v: &i64| usize::try_from(v).map_err(|_| GraphNodeError::Shapes(format!("a dimension of {v}")));
    values.iter().map(size).collect()
}

/// The shape a Reshape asks for: −1 is what is left, 0 copies unless zeros are allowed.
fn resolve(shape: &[usize], wanted: &[i64], allow_zero: bool) -> NodeResult<Vec<usize>> {
    let fail = || GraphNodeError::Shapes(format!("{shape:?} cannot be reshaped to {wanted:?}"));
    let mut target = Vec::with_capacity(wanted.len());
    let mut free = None;
    for (i, &size) in wanted.iter().enumerate() {
        target.push(match size {
            -1 if free.is_none() => {
                free = Some(i);
                1
            }
            0 if !allow_zero => *shape.get(i).ok_or_else(fail)?,
            size => usize::try_from(size).map_err(|_| fail())?,
        });
    }
    let elements: usize = shape.iter().product();
    let known = target.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).ok_or_else(fail)?;
    if let Some(i) = free {
        target[i] = elements.checked_div(known).ok_or_else(fail)?;
    }
    match target.iter().try_fold(1usize, |n, &d| n.checked_mul(d)) {
        Some(n) if n == elements => Ok(target),
        _ => Err(fail()),
    }
}

fn concat(node: &mut NodeLowering<'_, '_>, a: i64) -> NodeResult<Vec<LoweredValue>> {
    let parts = (0..node.inputs()).map(|i| node.known(i).cloned()).collect::<NodeResult<Vec<_>>>()?;
    let first = parts[0].shape().to_vec();
    let a = axis(a, first.len())?;
    let mut shape = first.clone();
    shape[a] = 0;
    for part in &parts {
        let fits = part.shape().len() == first.len()
            && (0..first.len()).all(|i| i == a || part.shape()[i] == first[i]);
        let sum = part.shape().get(a).and_then(|&size| shape[a].checked_add(size));
        match sum {
            Some(sum) if fits => shape[a] = sum,
            _ => return shapes(format!("{:?} does not continue {first:?} along {a}", part.shape())),
        }
    }
    if let LoweredValue::Int(_) = &parts[0] {
        if first.len() != 1 {
            return shapes("integers are concatenated as lists only");
        }
        let data = parts.iter().flat_map(|part| match part {
            LoweredValue::Int(ints) => ints.data.clone(),
            LoweredValue::Float(_) => vec![],
        });
        return Ok(vec![FoldedInts::new(shape, data.collect())?.into()]);
    }
    let floats: Vec<LoweredFloat> = parts.iter().filter_map(|part| part.as_float().cloned()).collect();
    let operands: Vec<&LoweredFloat> = floats.iter().collect();
    match operands.as_slice() {
        [only] => Ok(vec![LoweredValue::Float((*only).clone())]),
        operands => Ok(vec![node.emit(Kernel::Concat(a), operands, shape)?.into()]),
    }
}

fn slice(node: &mut NodeLowering<'_, '_>, x: LoweredValue) -> NodeResult<Vec<LoweredValue>> {
    let rank = x.shape().len();
    let (starts, ends) = (node.ints(1)?.data, node.ints(2)?.data);
    let axes = match node.ints_or_none(3)? {
        Some(axes) => axes.data.iter().map(|&a| axis(a, rank)).collect::<NodeResult<Vec<_>>>()?,
        None => (0..starts.len()).collect(),
    };
    let steps = node.ints_or_none(4)?.map_or_else(|| vec![1; starts.len()], |steps| steps.data);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] || axes.iter().any(|&a| a >= rank) {
        return shapes(format!(
            "starts {starts:?}, ends {ends:?}, axes {axes:?}, steps {steps:?} of {rank} dimensions"
        ));
    }
    let mut out = x;
    for (i, &a) in axes.iter().enumerate() {
        let (size, step) = (out.shape()[a] as i64, steps[i]);
        if step == 0 {
            return shapes("a step of 0");
        }
        let from_end = |v: i64| if v < 0 { v.saturating_add(size) } else { v };
        let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let start = from_end(starts[i]).clamp(low.max(0), high);
        let end = from_end(ends[i]).clamp(low, high);
        out = match step {
            1 => node.range(&out, a, start as usize, end.max(start) as usize)?,
            step => {
                let count = ((end - start) as f64 / step as f64).ceil().max(0.0) as i64;
                node.select(&out, a, (0..count).map(|k| (start + k * step) as usize).collect())?
            }
        };
    }
    Ok(vec![out])
}

impl NodeLowering<'_, '_> {
    /// Axes of an attribute or of input 1, sorted; none if neither is given.
    fn axes(&self, attribute: &Option<Vec<i64>>, rank: usize) -> NodeResult<Option<Vec<usize>>> {
        let axes = match attribute {
            Some(axes) => Some(axes.clone()),
            None => self.ints_or_none(1)?.map(|axes| axes.data),
        };
        let Some(axes) = axes else { return Ok(None) };
        let mut axes = axes.iter().map(|&a| axis(a, rank)).collect::<NodeResult<Vec<_>>>()?;
        axes.sort_unstable();
        axes.dedup();
        Ok(Some(axes))
    }

    pub(crate) fn permute(&mut self, x: &LoweredFloat, perm: Vec<usize>) -> NodeResult<LoweredFloat> {
        if perm.is_sorted() {
            return Ok(x.clone());
        }
        let shape = perm.iter().map(|&i| x.shape[i]).collect();
        self.emit(Kernel::Permute(perm), &[x], shape)
    }

    fn reshaped(&mut self, x: &LoweredValue, shape: Vec<usize>) -> NodeResult<LoweredValue> {
        match x {
            LoweredValue::Float(x) => Ok(self.reshape(x, shape)?.into()),
            LoweredValue::Int(x) => Ok(FoldedInts::new(shape, x.data.clone())?.into()),
        }
    }

    /// `start..end` along one axis.
    pub(crate) fn range(
        &mut self,
        x: &LoweredValue,
        axis: usize,
        start: usize,
        end: usize,
    ) -> NodeResult<LoweredValue> {
        match x {
            LoweredValue::Int(_) => self.select(x, axis, (start..end).collect()),
            LoweredValue::Float(x) if start == 0 && end == x.shape[axis] => Ok(x.clone().into()),
            LoweredValue::Float(x) => {
                let mut shape = x.shape.clone();
                shape[axis] = end - start;
                Ok(self.emit(Kernel::Slice { axis, start, end }, &[x], shape)?.into())
            }
        }
    }

    /// Some indices along one axis.
    fn select(&mut self, x: &LoweredValue, axis: usize, indices: Vec<usize>) -> NodeResult<LoweredValue> {
        let mut shape = x.shape().to_vec();
        let size = std::mem::replace(&mut shape[axis], indices.len());
        match x {
            LoweredValue::Float(x) => Ok(self.emit(Kernel::Select { axis, indices }, &[x], shape)?.into()),
            LoweredValue::Int(x) => {
                let inner: usize = shape[axis + 1..].iter().product();
                let outer: usize = shape[..axis].iter().product();
                let at = |o: usize, i: usize| (o * size + i) * inner;
                let data =
                    (0..outer).flat_map(|o| indices.iter().flat_map(move |&i| at(o, i)..at(o, i) + inner));
                let data = data.map(|flat| x.data[flat]).collect();
                Ok(FoldedInts::new(shape, data)?.into())
            }
        }
    }
}
