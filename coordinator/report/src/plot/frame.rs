//! The axes that every plot of the report shares.

use super::{Anchor, Scale, Svg};

/// Width of a plot in user units.
pub const WIDTH: f64 = 560.0;
/// Height of a plot in user units.
pub const HEIGHT: f64 = 340.0;

const LEFT: f64 = 56.0;
const MARGIN: f64 = 14.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT - 42.0;

/// Two axes and the space between them.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// The right end of the space.
    pub right: f64,
    /// The horizontal axis.
    pub x: Scale,
    /// The vertical axis.
    pub y: Scale,
}

impl Frame {
    /// The left end of the space.
    pub const LEFT: f64 = LEFT;
    /// The margin on the right.
    pub const MARGIN: f64 = MARGIN;
    /// The upper end of the vertical axis.
    pub const TOP: f64 = TOP;
    /// The lower end of the vertical axis.
    pub const BOTTOM: f64 = BOTTOM;

    /// Axes for the given extents in a plot of `width`; rounds and the like take `x` as it is, values widen `y` to round numbers.
    pub fn new(width: f64, x: (f64, f64), y: (f64, f64)) -> Self {
        let right = width - MARGIN;
        Self { right, x: Scale::exact(x, (LEFT, right)), y: Scale::nice(y, (BOTTOM, TOP)) }
    }

    /// The position of a pair of values.
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }

    /// Grid, ticks and the names of the axes. Both names are set horizontally, where the eye starts and ends.
    pub fn draw(&self, svg: &mut Svg, x_name: &str, y_name: &str) {
        for tick in self.y.ticks() {
            let y = self.y.at(tick);
            svg.line("grid", (LEFT, y), (self.right, y));
            svg.text("tick", (LEFT - 8.0, y + 4.0), Anchor::End, &self.y.label(tick));
        }
        svg.line("axis", (LEFT, BOTTOM), (self.right, BOTTOM));
        for tick in self.x.ticks() {
            let x = self.x.at(tick);
            svg.line("axis", (x, BOTTOM), (x, BOTTOM + 4.0));
            svg.text("tick", (x, BOTTOM + 18.0), Anchor::Middle, &self.x.label(tick));
        }
        svg.text("name", (self.right, BOTTOM + 36.0), Anchor::End, x_name);
        svg.text("name", (4.0, 16.0), Anchor::Start, y_name);
    }
}
