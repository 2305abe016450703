//! The plots of the page, with what to read off them.

use crate::RunReport;
use crate::charts::{self, LINES_MAX, RoundsPlot, ScatterPlot};
use crate::plot::{WIDTH, escaped, put};

pub(super) fn plots(page: &mut String, report: &RunReport<'_>) {
    let few = report.nodes.len() <= LINES_MAX;
    let unit = if few { "one line a node" } else { "median and middle 80 % of each class" };
    contributions(page, report, unit);
    draws(page, report);
    forecasts(page, report, unit);
}

fn contributions(page: &mut String, report: &RunReport<'_>, unit: &str) {
    section(page, "What each node contributed", report.standings());
    page.push_str("<div class=\"pair\">\n");
    let plot = RoundsPlot {
        id: "standing",
        title: "Standings over rounds",
        y_name: "standing ψ",
        width: WIDTH,
        from: 0,
    };
    let rounds = &report.log.rounds;
    let standings = charts::over_rounds(&plot, report, |round, node| rounds[round].standings[node]);
    figure(page, &format!("Standings, {unit}"), &standings, "");
    let test = if report.is_continuous() { "Are standings settled?" } else { "The stop rule" };
    figure(page, test, &charts::stop_rule(report), "");
    page.push_str("</div>\n");
}

fn draws(page: &mut String, report: &RunReport<'_>) {
    let order = &report.source.annotation.name;
    section(page, "What each node received", &report.odds());
    page.push_str("<div class=\"pair\">\n");
    let odds = ScatterPlot {
        id: "odds",
        title: &format!("Sampling probability against {order}"),
        y_name: "sampling probability ϱ",
        rho: None,
        reference: Some((1.0 / report.nodes.len().max(1) as f64, "equal share")),
    };
    let probabilities: Vec<f64> = report.nodes.iter().map(|node| node.sampling_probability).collect();
    figure(page, "Odds of one draw", &charts::scatter(&odds, report, &probabilities), "");
    let waiting = ScatterPlot {
        id: "staleness",
        title: &format!("Mean staleness against {order}"),
        y_name: "mean staleness, rounds",
        rho: report.rho_staleness,
        reference: None,
    };
    let waits: Vec<f64> = report.nodes.iter().map(|node| node.mean_staleness).collect();
    figure(page, "Mean wait for the latest model", &charts::scatter(&waiting, report, &waits), "");
    page.push_str("</div>\n");
    let caption = "Rounds since the model was last received";
    figure(page, caption, &charts::staleness(report), " class=\"wide\"");
}

fn forecasts(page: &mut String, report: &RunReport<'_>, unit: &str) {
    let (order, losses) = (&report.source.annotation.name, &report.source.losses);
    let capital = capital(&losses.name);
    section(page, "What it meant for forecasts", &losses.meaning);
    let over_rounds = RoundsPlot {
        id: "loss",
        title: &format!("{capital} over rounds"),
        y_name: &losses.name,
        width: 2.0 * WIDTH,
        from: 0,
    };
    let drawing = charts::over_rounds(&over_rounds, report, |round, node| losses.values[round][node]);
    figure(page, &format!("{capital}, {unit}"), &drawing, " class=\"wide\"");
    page.push_str("<div class=\"pair\">\n");
    if losses.comparable {
        let excess = report.excess_losses();
        let cost = RoundsPlot {
            id: "cost",
            title: "What waiting cost",
            y_name: &format!("{} above the best-placed node's, running mean", losses.name),
            width: WIDTH,
            from: report.explored_until.map_or(0, |last| last as usize),
        };
        let costs = charts::over_rounds(&cost, report, |round, node| excess[round][node]);
        figure(page, &format!("What waiting cost, {unit}"), &costs, "");
    }
    let mean_loss = ScatterPlot {
        id: "mean-loss",
        title: &format!("Mean {} against {order}", losses.name),
        y_name: &format!("mean {}", losses.name),
        rho: report.rho_loss,
        reference: None,
    };
    let drawing = charts::scatter(&mean_loss, report, &report.losses);
    figure(page, &format!("Mean {}", losses.name), &drawing, "");
    page.push_str("</div>\n");
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn section(page: &mut String, title: &str, text: &str) {
    put(page, format_args!("<h2>{title}</h2>\n<p class=\"say\">{}</p>\n", escaped(text)));
}

fn figure(page: &mut String, caption: &str, drawing: &str, attributes: &str) {
    let caption = escaped(caption);
    put(page, format_args!("<figure{attributes}><figcaption>{caption}</figcaption>{drawing}</figure>\n"));
}
