//! Normalisation.

use crate::error::{NodeResult, shapes};
use crate::kernel::{Binary, Unary};
use crate::lower::{Known, Node};
use crate::ops::axis;
use crate::ops::broadcast;
use crate::reader::{Reader, refuse};

/// Batch normalisation with the statistics in the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Batch {
    epsilon: f32,
}

impl Batch {
    pub(crate) fn parse(reader: &Reader<'_>) -> NodeResult<Self> {
        reader.arity(5..=5, 1..=5)?;
        reader.float("momentum", 0.9)?;
        if reader.flag("training_mode", false)? || (reader.opset >= 14 && reader.outputs() > 1) {
            return refuse(
                "training_mode",
                "1 is not supported: export with the running statistics, training_mode 0",
            );
        }
        Ok(Batch { epsilon: reader.float("epsilon", 1e-5)? })
    }

    pub(crate) fn lower(&self, node: &mut Node<'_, '_>) -> NodeResult<Vec<Known>> {
        let x = node.float(0)?;
        let [scale, bias, mean, variance] = [node.float(1)?, node.float(2)?, node.float(3)?, node.float(4)?];
        let channels = if x.shape.len() > 1 { x.shape[1] } else { 1 };
        if x.shape.len() < 2 || [&scale, &bias, &mean, &variance].iter().any(|v| v.shape != [channels]) {
            return shapes(format!("{:?} with scale {:?}", x.shape, scale.shape));
        }
        // y = x·s + (bias − mean·s) with s = scale / √(variance + ε): two passes over x instead of four.
        let deviation = node.unary(Unary::AddScalar(self.epsilon), &variance)?;
        let deviation = node.unary(Unary::Sqrt, &deviation)?;
        let factor = node.binary(Binary::Div, &scale, &deviation)?;
        let shift = node.binary(Binary::Mul, &mean, &factor)?;
        let offset = node.binary(Binary::Sub, &bias, &shift)?;
        let mut shape = vec![1; x.shape.len()];
        shape[1] = channels;
        let (factor, offset) = (node.reshape(&factor, shape.clone())?, node.reshape(&offset, shape)?);
        let scaled = node.binary(Binary::Mul, &x, &factor)?;
        Ok(vec![node.binary(Binary::Add, &scaled, &offset)?.into()])
    }
}

/// Normalisation over the last dimensions of each sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layer {
    axis: i64,
    epsilon: f32,
}

impl Layer {
    pub(crate) fn parse(reader: &Reader<'_>) -> NodeResult<Self> {
        reader.arity(2..=3, 1..=3)?;
        if reader.int("stash_type")?.unwrap_or(1) != 1 {
            return refuse("stash_type", "only 1 (float) is supported");
        }
        Ok(Layer { axis: reader.int("axis")?.unwrap_or(-1), epsilon: reader.float("epsilon", 1e-5)? })
    }

    pub(crate) fn lower(&self, node: &mut Node<'_, '_>) -> NodeResult<Vec<Known>> {
        let (x, scale, bias) = (node.float(0)?, node.float(1)?, node.float_or_none(2)?);
        let axes: Vec<usize> = (axis(self.axis, x.shape.len())?..x.shape.len()).collect();
        for operand in [Some(&scale), bias.as_ref()].into_iter().flatten() {
            if broadcast::shape(&x.shape, &operand.shape).as_ref() != Ok(&x.shape) {
                return shapes(format!("{:?} does not broadcast to {:?}", operand.shape, x.shape));
            }
        }
        let mean = node.mean(&x, &axes)?;
        let centred = node.binary(Binary::Sub, &x, &mean)?;
        let squares = node.binary(Binary::Mul, &centred, &centred)?;
        let variance = node.mean(&squares, &axes)?;
        let deviation = node.unary(Unary::AddScalar(self.epsilon), &variance)?;
        let deviation = node.unary(Unary::Sqrt, &deviation)?;
        let normal = node.binary(Binary::Div, &centred, &deviation)?;
        let mut out = node.binary(Binary::Mul, &normal, &scale)?;
        if let Some(bias) = bias {
            out = node.binary(Binary::Add, &out, &bias)?;
        }
        Ok(vec![out.into()])
    }
}
