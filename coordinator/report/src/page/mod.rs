//! The page: tiles, plots, the table of nodes, settings.

mod plots;
mod tiles;

use crate::RunReport;
use crate::charts::{CLASSES, LINES_MAX};
use crate::in_force::{promise_text, temperature_text};
use crate::number_text::probability_decimals;
use crate::plot::{escaped, extent, put, signed};

pub(crate) fn html(report: &RunReport<'_>) -> String {
    let mut page = String::with_capacity(256 * 1024);
    let (heading, style) = (report.headline(), crate::STYLE);
    put(
        &mut page,
        format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>Evenhand: {heading}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n\
             <p class=\"mark\">Evenhand</p>\n<h1>{heading}</h1>\n<p class=\"lead\">{}</p>\n",
            escaped(&report.lead())
        ),
    );
    if let Some(unfinished) = &report.source.unfinished {
        let (done, wanted) = (report.log.rounds.len(), report.rules.federation.rounds);
        let unfinished = escaped(unfinished);
        let of = if wanted > 0 { format!(" of {wanted}") } else { String::new() };
        put(&mut page, format_args!("<p class=\"notice\">{unfinished}: {done}{of} rounds were done.</p>\n"));
    }
    tiles::tiles(&mut page, report);
    if report.log.rounds.is_empty() {
        page.push_str("<p class=\"notice\">No round was finished, so there is nothing to plot.</p>\n");
    } else {
        key(&mut page, report);
        plots::plots(&mut page, report);
    }
    table(&mut page, report);
    settings(&mut page, report);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn key(page: &mut String, report: &RunReport<'_>) {
    let annotation = &report.source.annotation;
    let (low, high) = extent(annotation.values.iter().copied());
    let width = (high - low) / CLASSES as f64;
    let name = escaped(&annotation.name);
    put(
        page,
        format_args!("<ul class=\"key\" aria-label=\"Colours of {name}\"><li>Colours, by {name}:</li>"),
    );
    for class in 0..CLASSES {
        let from = low + class as f64 * width;
        let meaning = match class {
            0 => format!(" ({})", escaped(&annotation.low)),
            c if c + 1 == CLASSES => format!(" ({})", escaped(&annotation.high)),
            _ => String::new(),
        };
        put(
            page,
            format_args!("<li><i class=\"z{class}\"></i>{from:.2} to {:.2}{meaning}</li>", from + width),
        );
    }
    page.push_str("</ul>\n");
}

fn table(page: &mut String, report: &RunReport<'_>) {
    let nodes = report.nodes.len();
    let tall = if nodes > 2 * LINES_MAX { " tall" } else { "" };
    let (annotation, losses) = (&report.source.annotation, &report.source.losses);
    let columns = &report.source.columns;
    put(
        page,
        format_args!(
            "<h2>Every node</h2>\n<p class=\"say\">Staleness counts rounds since the model was last received, over the \
             rounds in which nodes were drawn.</p>\n<div class=\"scroll{tall}\" tabindex=\"0\" role=\"region\" aria-label=\"Every node\">\
             <table>\n<thead><tr><th scope=\"col\">node</th>\
             <th scope=\"col\">{}</th><th scope=\"col\">standing ψ</th><th scope=\"col\">probability ϱ</th>\
             <th scope=\"col\">drawn</th><th scope=\"col\">mean staleness</th><th scope=\"col\">longest</th>\
             <th scope=\"col\">{}</th>{}</tr></thead>\n<tbody>\n",
            escaped(&annotation.symbol),
            escaped(&losses.name),
            columns
                .iter()
                .map(|column| format!("<th scope=\"col\">{}</th>", escaped(&column.name)))
                .collect::<String>()
        ),
    );
    let decimals = probability_decimals(nodes);
    for (at, ((node, value), loss)) in
        report.nodes.iter().zip(&annotation.values).zip(&report.losses).enumerate()
    {
        let more: String = (columns.iter())
            .map(|column| format!("<td>{}</td>", escaped(column.cells.get(at).map_or("", String::as_str))))
            .collect();
        put(
            page,
            format_args!(
                "<tr><th scope=\"row\">{}</th><td>{value:.2}</td><td>{}</td><td>{:.decimals$}</td><td>{}</td><td>{:.2}</td>\
                 <td>{}</td><td>{loss:.4}</td>{more}</tr>\n",
                escaped(&node.id),
                signed(node.standing, 5),
                node.sampling_probability,
                node.drawn,
                node.mean_staleness,
                node.longest_staleness,
            ),
        );
    }
    page.push_str("</tbody>\n</table></div>\n");
}

fn settings(page: &mut String, report: &RunReport<'_>) {
    let rules = report.rules;
    let mut shown: Vec<(String, String)> = [
        (
            "rounds",
            if rules.federation.rounds == 0 { "no end".into() } else { rules.federation.rounds.to_string() },
        ),
        ("draws a round, k", rules.exploiting.k.to_string()),
        ("sampler", rules.exploiting.sampler.to_string()),
        ("policy", rules.federation.policy.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if report.is_continuous() {
        shown.push(("temperature β".into(), promise_text(&report.promised_wait(), report.log)));
        shown.push(("memory of standings, rounds".into(), rules.continuous.memory_rounds.to_string()));
        shown
            .push(("rounds before a newcomer is drawn".into(), rules.continuous.newcomer_rounds.to_string()));
    } else {
        shown.push(("temperature β".into(), temperature_text(rules, report.log)));
    }
    shown.extend(report.criterion().settings(report.is_continuous()));
    shown.push(("codec of updates".into(), rules.training.codec.to_string()));
    shown.push(("seed".into(), rules.federation.seed.to_string()));
    let (labels, of_rules) = (
        report.source.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())),
        shown.iter().map(|(name, value)| (name.as_str(), value.as_str())),
    );
    page.push_str("<h2>Settings</h2>\n<dl class=\"settings\">\n");
    for (name, value) in labels.chain(of_rules) {
        put(page, format_args!("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value)));
    }
    let (purpose, command) = &report.source.command;
    let (purpose, command) = (escaped(purpose), escaped(command));
    put(page, format_args!("</dl>\n<p class=\"repeat\">{purpose}: <code>{command}</code></p>\n"));
}
