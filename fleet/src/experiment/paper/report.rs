//! The report of tables and figures: one HTML file that needs nothing but itself.

use evenhand_report::plot::{escaped, put};

use super::document::WordTable;
use super::selection::ShownItem;
use crate::experiment::page::{close, figure, opened};

/// The page of some items.
pub fn html(heading: &str, lead: &str, shown: &[ShownItem], agreement: &[WordTable]) -> String {
    let mut page = opened(heading);
    put(&mut page, format_args!("<p class=\"lead\">{}</p>\n", escaped(lead)));
    for item in shown {
        put(&mut page, format_args!("<h2>{}</h2>\n", escaped(item.item.about)));
        for table in &item.tables {
            put(&mut page, format_args!("<h3>{}</h3>\n{}", escaped(&table.title), table.html()));
        }
        for (caption, drawing) in &item.figure.drawings {
            figure(&mut page, &escaped(caption), drawing, " class=\"wide\"");
        }
    }
    for table in agreement {
        put(&mut page, format_args!("<h2>{}</h2>\n{}", escaped(&table.title), table.html()));
    }
    close(page)
}
