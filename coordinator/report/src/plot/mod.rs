//! Plots as inline SVG, drawn here: five shapes do not need a plotting library.

mod frame;
mod scale;
mod svg;

pub use frame::{Frame, HEIGHT, WIDTH};
pub use scale::{Scale, extent, signed};
pub use svg::{Anchor, Svg, escaped, put};
