//! Convolutions in one and two dimensions.

use crate::error::{NodeResult, shapes};
use crate::kernel::{self, Kernel};
use crate::lower::NodeLowering;
use crate::lowered_value::LoweredValue;
use crate::node_reader::{NodeReader, refuse, sizes};

/// Larger windows than any model needs, small enough for every product of sizes to fit.
const SIZE_MAX: i64 = 1 << 16;

/// The window of a convolution or a pool, before the input's size is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WindowAttributes {
    pub(crate) kernel: Option<Vec<usize>>,
    strides: Option<Vec<usize>>,
    dilations: Option<Vec<usize>>,
    padding: PaddingMode,
}

#[derive(Debug, Clone, PartialEq)]
enum PaddingMode {
    /// All beginnings, then all ends.
    Explicit(Vec<usize>),
    Valid,
    SameUpper,
    SameLower,
}

/// The window along one axis, resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowAxis {
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
    pub(crate) dilation: usize,
    pub(crate) begin: usize,
    pub(crate) end: usize,
    pub(crate) output: usize,
}

impl WindowAttributes {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        let list = |name, min| match reader.ints(name)? {
            Some(values) => sizes(name, values, min, SIZE_MAX).map(Some),
            None => Ok(None),
        };
        let pads = list("pads", 0)?;
        let padding = match reader.string("auto_pad")?.unwrap_or("NOTSET") {
            "NOTSET" => PaddingMode::Explicit(pads.unwrap_or_default()),
            "VALID" => PaddingMode::Valid,
            "SAME_UPPER" => PaddingMode::SameUpper,
            "SAME_LOWER" => PaddingMode::SameLower,
            other => {
                return refuse("auto_pad", format!("`{other}`; use NOTSET, VALID, SAME_UPPER or SAME_LOWER"));
            }
        };
        Ok(WindowAttributes {
            kernel: list("kernel_shape", 1)?,
            strides: list("strides", 1)?,
            dilations: list("dilations", 1)?,
            padding,
        })
    }

    pub(crate) fn dilated(&self) -> bool {
        self.dilations.iter().flatten().any(|&d| d != 1)
    }

    /// The window for an input of these spatial sizes; `ceil` rounds the number of outputs up.
    pub(crate) fn resolve(
        &self,
        input: &[usize],
        kernel: &[usize],
        ceil: bool,
    ) -> NodeResult<Vec<WindowAxis>> {
        let n = input.len();
        if let Some(bad) = [Some(kernel), self.strides.as_deref(), self.dilations.as_deref()]
            .into_iter()
            .flatten()
            .find(|values| values.len() != n)
        {
            return shapes(format!("{bad:?} for {n} spatial dimensions"));
        }
        if let PaddingMode::Explicit(pads) = &self.padding
            && !pads.is_empty()
            && pads.len() != 2 * n
        {
            return shapes(format!("pads {pads:?} for {n} spatial dimensions"));
        }
        let at = |values: &Option<Vec<usize>>, i: usize| values.as_ref().map_or(1, |v| v[i]);
        (0..n)
            .map(|i| {
                let (size, kernel, stride, dilation) =
                    (input[i], kernel[i], at(&self.strides, i), at(&self.dilations, i));
                let reach = dilation * (kernel - 1) + 1;
                let same = || ((size.div_ceil(stride) - 1) * stride + reach).saturating_sub(size);
                let (begin, end) = match &self.padding {
                    PaddingMode::Explicit(pads) if pads.is_empty() => (0, 0),
                    PaddingMode::Explicit(pads) => (pads[i], pads[n + i]),
                    PaddingMode::Valid => (0, 0),
                    PaddingMode::SameUpper => (same() / 2, same() - same() / 2),
                    PaddingMode::SameLower => (same() - same() / 2, same() / 2),
                };
                let Some(room) = (size + begin + end).checked_sub(reach) else {
                    return shapes(format!(
                        "a window of {reach} on {size} values padded by {begin} and {end}"
                    ));
                };
                let mut output = room / stride + 1;
                // The last window may exceed the input, but not start beyond it.
                if ceil && !room.is_multiple_of(stride) && output * stride < size + begin {
                    output += 1;
                }
                Ok(WindowAxis { kernel, stride, dilation, begin, end, output })
            })
            .collect()
    }
}

/// A convolution of `[batch, channels, length]` or `[batch, channels, height, width]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConvOp {
    window: WindowAttributes,
    groups: usize,
}

impl ConvOp {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        reader.arity(2..=3, 1..=1)?;
        let groups = sizes("group", &[reader.int("group")?.unwrap_or(1)], 1, SIZE_MAX)?[0];
        Ok(ConvOp { window: WindowAttributes::parse(reader)?, groups })
    }

    pub(crate) fn lower(&self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        let (x, w, bias) = (node.float(0)?, node.float(1)?, node.float_or_none(2)?);
        let rank = x.shape.len();
        if !(3..=4).contains(&rank) || w.shape.len() != rank {
            return shapes(format!(
                "{:?} with kernel {:?}; supported are 1-D and 2-D convolutions",
                x.shape, w.shape
            ));
        }
        let (outputs, inputs) = (w.shape[0], w.shape[1]);
        if x.shape[1] != inputs * self.groups || !outputs.is_multiple_of(self.groups) {
            return shapes(format!("{:?} with kernel {:?} in {} groups", x.shape, w.shape, self.groups));
        }
        if self.window.kernel.as_deref().is_some_and(|kernel| kernel != &w.shape[2..]) {
            return shapes(format!("kernel_shape {:?} is not that of {:?}", self.window.kernel, w.shape));
        }
        if let Some(bias) = &bias
            && bias.shape != [outputs]
        {
            return shapes(format!("bias {:?} for {outputs} channels", bias.shape));
        }
        let mut axes = self.window.resolve(&x.shape[2..], &w.shape[2..], false)?;
        if axes.iter().any(|axis| axis.begin + axis.end > 0) {
            let mut padded = x.shape.clone();
            padded[2..].iter_mut().zip(&axes).for_each(|(size, axis)| *size += axis.begin + axis.end);
            node.reserve(&padded)?;
        }
        let mut shape = vec![x.shape[0], outputs];
        shape.extend(axes.iter().map(|axis| axis.output));
        let (x, w) = (node.planar(&x, &mut axes)?, node.planar(&w, &mut Vec::new())?);
        let [rows, columns] = [axes[0], axes[1]];
        let kernel = Kernel::Conv(kernel::ConvKernel {
            stride: [rows.stride, columns.stride],
            padding: [(rows.begin, rows.end), (columns.begin, columns.end)],
            dilation: [rows.dilation, columns.dilation],
            groups: self.groups,
        });
        let planar = vec![shape[0], outputs, rows.output, columns.output];
        let out = match &bias {
            Some(bias) => node.emit(kernel, &[&x, &w, bias], planar)?,
            None => node.emit(kernel, &[&x, &w], planar)?,
        };
        Ok(vec![node.reshape(&out, shape)?.into()])
    }
}

/// The window along an axis of size 1.
pub(crate) const FLAT: WindowAxis =
    WindowAxis { kernel: 1, stride: 1, dilation: 1, begin: 0, end: 0, output: 1 };

impl NodeLowering<'_, '_> {
    /// One-dimensional data as images of height 1.
    pub(crate) fn planar(
        &mut self,
        x: &crate::lowered_value::LoweredFloat,
        axes: &mut Vec<WindowAxis>,
    ) -> NodeResult<crate::lowered_value::LoweredFloat> {
        if x.shape.len() != 3 {
            return Ok(x.clone());
        }
        axes.insert(0, FLAT);
        self.reshape(x, vec![x.shape[0], x.shape[1], 1, x.shape[2]])
    }
}
