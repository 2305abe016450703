//! Plots as inline SVG, drawn here: five shapes do not need a plotting library.

mod frame;
mod scale;
mod svg;

pub(crate) use frame::{Frame, HEIGHT, WIDTH};
pub(crate) use scale::{Scale, extent, signed};
pub(crate) use svg::{Anchor, Svg, escaped, put};
