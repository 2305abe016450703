//! A drawing as text. Colours are CSS classes, so that light and dark share one drawing.

use std::fmt::{Display, Write};

/// An SVG drawing under way.
#[derive(Debug)]
pub struct Svg {
    body: String,
}

/// The part of a text that is at its position.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    /// At its beginning.
    Start,
    /// In its middle.
    Middle,
    /// At its end.
    End,
}

impl Svg {
    /// A drawing of `width` × `height` units that says in words what it shows.
    pub fn new(id: &str, (width, height): (f64, f64), title: &str, description: &str) -> Self {
        let mut body = String::new();
        let (title, description) = (escaped(title), escaped(description));
        put(
            &mut body,
            format_args!(
                "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
                 <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{description}</desc>"
            ),
        );
        Self { body }
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        put(
            &mut self.body,
            format_args!(
                "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
            ),
        );
    }

    /// A rectangle, with a text on hovering.
    pub fn rect(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        hover: Option<&str>,
    ) {
        put(
            &mut self.body,
            format_args!(
                "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\""
            ),
        );
        self.close("rect", hover);
    }

    /// A dot, with a text on hovering.
    pub fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64, hover: Option<&str>) {
        put(
            &mut self.body,
            format_args!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\""),
        );
        self.close("circle", hover);
    }

    /// A line through all points, with a text on hovering.
    pub fn polyline(
        &mut self,
        class: &str,
        points: impl IntoIterator<Item = (f64, f64)>,
        hover: Option<&str>,
    ) {
        put(&mut self.body, format_args!("<polyline class=\"{class}\" points=\""));
        self.points(points);
        self.body.push('"');
        self.close("polyline", hover);
    }

    /// The space within all points.
    pub fn polygon(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        put(&mut self.body, format_args!("<polygon class=\"{class}\" points=\""));
        self.points(points);
        self.body.push_str("\"/>");
    }

    /// One line of text.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        put(
            &mut self.body,
            format_args!(
                "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
            ),
        );
    }

    /// The element, complete.
    pub fn finish(mut self) -> String {
        self.body.push_str("</svg>");
        self.body
    }

    fn points(&mut self, points: impl IntoIterator<Item = (f64, f64)>) {
        for (index, (x, y)) in points.into_iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            put(&mut self.body, format_args!("{gap}{x:.1},{y:.1}"));
        }
    }

    fn close(&mut self, element: &str, hover: Option<&str>) {
        match hover {
            Some(text) => put(&mut self.body, format_args!("><title>{}</title></{element}>", escaped(text))),
            None => self.body.push_str("/>"),
        }
    }
}

/// `text` as character data or attribute value.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            other => safe.push(other),
        }
    }
    safe
}

/// Writes `text` to the end of `body`.
pub fn put(body: &mut String, text: impl Display) {
    write!(body, "{text}").expect("a String takes any text");
}
