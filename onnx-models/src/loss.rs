//! Losses and their gradients with respect to the output. Every loss is a mean, as in PyTorch.

use std::borrow::Cow;

use crate::error::{ModelError, Result};
use crate::quantiles;

/// The function that training minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Mean squared error over all elements.
    Mse,
    /// Negative log-likelihood of the true class, from logits.
    CrossEntropy,
    /// Negative log-likelihood of the true class, from log-probabilities.
    Nll,
    /// Squared error up to 1, absolute beyond, over all elements.
    Huber,
    /// Pinball loss of the quantile that each output column forecasts, over all elements.
    ///
    /// The levels are those of [`Model::quantiles`](crate::Model::quantiles).
    ///
    /// # Formula
    ///
    /// For the level q, the target y and the output ŷ: max(q·(y − ŷ), (q − 1)·(y − ŷ)). Its slope in ŷ is −q below the
    /// target and 1 − q above it; at the kink, ŷ = y, the subgradient 0 is taken.
    Pinball,
}

impl std::str::FromStr for Loss {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "mse" => Ok(Loss::Mse),
            "cross-entropy" => Ok(Loss::CrossEntropy),
            "nll" => Ok(Loss::Nll),
            "huber" => Ok(Loss::Huber),
            "pinball" => Ok(Loss::Pinball),
            other => Err(ModelError::Loss(other.to_owned())),
        }
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Loss::Mse => "mse",
            Loss::CrossEntropy => "cross-entropy",
            Loss::Nll => "nll",
            Loss::Huber => "huber",
            Loss::Pinball => "pinball",
        })
    }
}

/// The targets that the output is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// A value for every element of the output; for `mse`, `huber` and `pinball`.
    Values(Vec<f32>),
    /// A class for every sample of an output `[batch, classes]`; for `cross-entropy` and `nll`.
    Classes(Vec<u32>),
    /// A value for one chosen column of every sample, as in Q-learning; for `mse`, `huber` and `pinball`.
    Chosen {
        /// The column of each sample.
        columns: Vec<u32>,
        /// The target in that column.
        values: Vec<f32>,
    },
}

impl Targets {
    /// Number of targets; for [`Targets::Values`] the number of elements.
    pub fn len(&self) -> usize {
        match self {
            Targets::Values(values) => values.len(),
            Targets::Classes(classes) => classes.len(),
            Targets::Chosen { columns, .. } => columns.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A loss with its gradient with respect to the output.
pub(crate) struct OutputLoss {
    pub(crate) loss: f32,
    pub(crate) gradient: Vec<f32>,
    pub(crate) accuracy: Option<f32>,
}

/// The loss of an output against its targets; `quantiles` are the levels of the output's columns, if they are named.
pub(crate) fn output_loss(
    loss: Loss,
    quantiles: Option<&[f32]>,
    output: &[f32],
    shape: &[usize],
    targets: &Targets,
) -> Result<OutputLoss> {
    let fail = |why: String| Err(ModelError::Targets { output: shape.to_vec(), why });
    let levels = match loss {
        Loss::Pinball => levels(quantiles, shape)?,
        _ => Cow::Borrowed(&[][..]),
    };
    match (loss, targets) {
        (Loss::Mse | Loss::Huber | Loss::Pinball, Targets::Values(values)) => {
            if values.len() != output.len() {
                return fail(format!("{} values for {} elements", values.len(), output.len()));
            }
            Ok(regression(loss, &levels, output, values.iter().copied().enumerate(), values.len()))
        }
        (Loss::Mse | Loss::Huber | Loss::Pinball, Targets::Chosen { columns, values }) => {
            let (batch, width) = rows(shape, columns)?;
            if values.len() != batch {
                return fail(format!("{} values for {batch} samples", values.len()));
            }
            let places = columns.iter().enumerate().map(|(row, &column)| row * width + column as usize);
            Ok(regression(loss, &levels, output, places.zip(values.iter().copied()), batch))
        }
        (Loss::CrossEntropy | Loss::Nll, Targets::Classes(classes)) => {
            let (_, width) = rows(shape, classes)?;
            Ok(classification(loss, output, width, classes))
        }
        (Loss::Mse | Loss::Huber | Loss::Pinball, _) => {
            fail(format!("{loss} needs values, or values of chosen columns"))
        }
        (Loss::CrossEntropy | Loss::Nll, _) => fail(format!("{loss} needs classes")),
    }
}

/// The quantile level of each column of an output, whose last dimension counts the columns.
fn levels<'a>(quantiles: Option<&'a [f32]>, shape: &[usize]) -> Result<Cow<'a, [f32]>> {
    let fail = |why: String| Err(ModelError::Targets { output: shape.to_vec(), why });
    let &[_, .., width] = shape else {
        return fail("pinball needs an output [batch, quantiles]".to_owned());
    };
    match quantiles {
        None => Ok(quantiles::evenly(width).into()),
        Some(levels) if levels.len() == width => Ok(levels.into()),
        Some(levels) => {
            fail(format!("{} names {} levels for {width} columns", quantiles::QUANTILES, levels.len()))
        }
    }
}

/// Batch and width of an output of rows with one column marked in each.
fn rows(shape: &[usize], columns: &[u32]) -> Result<(usize, usize)> {
    let fail = |why: String| Err(ModelError::Targets { output: shape.to_vec(), why });
    let &[batch, width] = shape else {
        return fail("classes and columns need an output [batch, width]".to_owned());
    };
    if columns.len() != batch {
        return fail(format!("{} targets for {batch} samples", columns.len()));
    }
    match columns.iter().find(|&&column| column as usize >= width) {
        Some(column) => fail(format!("column {column} of {width}")),
        None => Ok((batch, width)),
    }
}

/// `levels` are those of the output's columns for the pinball loss.
fn regression(
    loss: Loss,
    levels: &[f32],
    output: &[f32],
    targets: impl Iterator<Item = (usize, f32)>,
    count: usize,
) -> OutputLoss {
    let mut gradient = vec![0.0; output.len()];
    let mut sum = 0.0f64;
    for (place, target) in targets {
        let error = output[place] - target;
        let (value, slope) = match loss {
            Loss::Huber if error.abs() > 1.0 => (error.abs() - 0.5, error.signum()),
            Loss::Huber => (0.5 * error * error, error),
            Loss::Pinball => {
                let level = levels[place % levels.len()];
                let slope = match error {
                    error if error > 0.0 => 1.0 - level,
                    error if error < 0.0 => -level,
                    _ => 0.0,
                };
                (slope * error, slope)
            }
            _ => (error * error, 2.0 * error),
        };
        sum += f64::from(value);
        gradient[place] = slope / count as f32;
    }
    OutputLoss { loss: (sum / count as f64) as f32, gradient, accuracy: None }
}

fn classification(loss: Loss, output: &[f32], width: usize, classes: &[u32]) -> OutputLoss {
    let mut gradient = vec![0.0; output.len()];
    let count = classes.len() as f32;
    let (mut sum, mut right) = (0.0f64, 0usize);
    for ((row, slopes), &class) in output.chunks(width).zip(gradient.chunks_mut(width)).zip(classes) {
        let class = class as usize;
        let (best, max) = row.iter().enumerate().fold((0, f32::NEG_INFINITY), |(best, max), (i, &value)| {
            if value > max { (i, value) } else { (best, max) }
        });
        right += usize::from(best == class);
        if loss == Loss::Nll {
            sum -= f64::from(row[class]);
        } else {
            let total: f32 = row.iter().map(|value| (value - max).exp()).sum();
            sum += f64::from(total.ln() + max - row[class]);
            for (slope, value) in slopes.iter_mut().zip(row) {
                *slope = (value - max).exp() / total / count;
            }
        }
        slopes[class] -= 1.0 / count;
    }
    let samples = classes.len() as f64;
    OutputLoss { loss: (sum / samples) as f32, gradient, accuracy: Some((right as f64 / samples) as f32) }
}
