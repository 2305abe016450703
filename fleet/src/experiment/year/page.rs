//! The report of a year: one HTML file that needs nothing but itself.

use evenhand_report::STYLE;
use evenhand_report::plot::{Anchor, Frame, HEIGHT, Svg, WIDTH, escaped, extent, put};

use super::figures::YearFigures;
use super::variant_name::YearVariant;

/// Variants of the plot over weeks, with the class of their colour.
const CURVES: [(YearVariant, usize); 5] = [
    (YearVariant::SlotMedian, 5),
    (YearVariant::Alone, 6),
    (YearVariant::Evenhand, 4),
    (YearVariant::EvenhandPersonal, 0),
    (YearVariant::Pooled, 3),
];
/// Weeks with fewer households than this share are not drawn: they are means over other households.
const SHOWN_SHARE: f64 = 0.5;
const TAGS: f64 = 150.0;

/// The page; `command` repeats the run.
pub fn page(figures: &YearFigures, command: &str) -> String {
    let own = include_str!("../style.css");
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>Evenhand: a year of meters</title>\n<style>\n{STYLE}{own}</style>\n</head>\n<body>\n<main>\n\
         <p class=\"mark\">Evenhand</p>\n<h1>A year of meters</h1>\n"
    );
    put(
        &mut page,
        format_args!(
            "<p class=\"lead\">{} households forecast the next 24 h for {} days; {} rounds. Figures are of the last third \
             of the time. Coverage of 10 to 90 %: {:.3}.</p>\n",
            figures.households, figures.days, figures.rounds, figures.coverage
        ),
    );
    page.push_str("<h2>MAE / mean load</h2>\n<div class=\"scroll\"><table><thead><tr><th>forecast</th>");
    for lead in &figures.leads {
        put(&mut page, format_args!("<th>steps {} to {}</th><th>better off</th>", lead.from, lead.to));
    }
    page.push_str("</tr></thead><tbody>\n");
    for variant in YearVariant::ALL {
        put(&mut page, format_args!("<tr><th>{}</th>", variant.name()));
        for lead in &figures.leads {
            let (ratio, better) = (lead.mae_ratio.0[variant.place()], lead.better_off.0[variant.place()]);
            put(&mut page, format_args!("<td>{ratio:.3}</td><td>{:.0} %</td>", 100.0 * better));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n<p class=\"say\">Better off: share of the households with a lower error than ");
    page.push_str("their best naive forecast in hindsight.</p>\n");
    figure(&mut page, "Weeks until alone is as good as together", &weeks(figures));
    page.push_str("<div class=\"pair\">\n");
    figure(&mut page, "Households ahead of learning alone", &ahead(figures));
    figure(&mut page, "Skill against staleness", &staleness(figures));
    page.push_str("</div>\n");
    put(
        &mut page,
        format_args!("<p class=\"repeat\">To repeat this: <code>{}</code></p>\n", escaped(command)),
    );
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn figure(page: &mut String, caption: &str, drawing: &str) {
    put(page, format_args!("<figure><figcaption>{caption}</figcaption>{drawing}</figure>\n"));
}

fn weeks(figures: &YearFigures) -> String {
    let title = "Error by weeks since joining";
    let width = 2.0 * WIDTH;
    let mut svg = Svg::new("weeks", (width, HEIGHT), title, "One line a forecast, mean over households.");
    let most = figures.by_weeks.iter().map(|week| week.households).max().unwrap_or(0) as f64;
    let shown = || figures.by_weeks.iter().filter(|week| week.households as f64 >= SHOWN_SHARE * most);
    let values = || shown().flat_map(|week| CURVES.map(|(variant, _)| week.mae_ratio.0[variant.place()]));
    let frame = Frame::new(width - TAGS, extent(shown().map(|week| week.week as f64)), extent(values()));
    frame.draw(&mut svg, "week since joining", "MAE / mean load, next 24 h");
    for (number, (variant, colour)) in CURVES.into_iter().enumerate() {
        let points: Vec<(f64, f64)> =
            shown().map(|week| frame.at(week.week as f64, week.mae_ratio.0[variant.place()])).collect();
        svg.polyline(&format!("curve c{colour}"), points, Some(variant.name()));
        let y = Frame::TOP + 16.0 * (number as f64 + 1.0);
        svg.text(&format!("tag c{colour}"), (frame.right + 14.0, y), Anchor::Start, variant.name());
    }
    svg.finish()
}

fn ahead(figures: &YearFigures) -> String {
    let title = "Share of households for which what they see is better than learning alone";
    let mut svg = Svg::new("ahead", (WIDTH, HEIGHT), title, "By week since joining.");
    let weeks = || figures.by_weeks.iter().map(|week| (week.week as f64, week.ahead_of_alone));
    let frame = Frame::new(WIDTH, extent(weeks().map(|point| point.0)), (0.0, 1.0));
    frame.draw(&mut svg, "week since joining", "share of households");
    let half = frame.y.at(0.5);
    svg.line("zero", (Frame::LEFT, half), (frame.right, half));
    svg.polyline("curve c0", weeks().map(|(week, share)| frame.at(week, share)), Some("ahead of alone"));
    svg.finish()
}

fn staleness(figures: &YearFigures) -> String {
    let title = "Skill of the shared model by the days since it was received";
    let mut svg =
        Svg::new("staleness", (WIDTH, HEIGHT), title, "1 less its error by that of the slot's median.");
    let points = || {
        figures.by_staleness.iter().map(|class| {
            (class.days_to.map_or(class.days_from, |to| (class.days_from + to) / 2.0), class.skill)
        })
    };
    let frame = Frame::new(
        WIDTH,
        extent(points().map(|point| point.0).chain([0.0])),
        extent(points().map(|point| point.1).chain([0.0])),
    );
    frame.draw(&mut svg, "days since the model was received", "skill, next 24 h");
    svg.polyline("curve c0", points().map(|(days, skill)| frame.at(days, skill)), None);
    for (days, skill) in points() {
        svg.circle("dot c0", frame.at(days, skill), 4.0, Some(&format!("{skill:.3}")));
    }
    svg.finish()
}
