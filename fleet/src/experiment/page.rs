//! The report of experiments: one HTML file that needs nothing but itself.

use super::charts::{self, NodeMeasure, VariantTrials};
use super::comparison::{filled_table, repeat_command, title};
use super::labels::number_label;
use super::measure::{Measure, score_name};
use super::runner::TrialRecords;
use super::setup::Setup;
use super::table::{ResultTable, seeds};
use evenhand_report::STYLE;
use evenhand_report::plot::{escaped, put};

/// The page of one experiment: `setups` has one a strategy.
pub fn experiment(setups: &[Setup], trials: u64, records: &TrialRecords) -> String {
    let heading = setups.first().map_or(String::new(), title);
    let mut page = opened(&heading);
    put(&mut page, format_args!("<p class=\"lead\">{}</p>\n", lead(setups, trials, records)));
    let table = filled_table(setups, trials, records);
    page.push_str("<h2>All figures</h2>\n<p class=\"say\">Mean ± standard error over trials.</p>\n");
    page.push_str(&table.html());
    plots(&mut page, "x", setups, trials, records);
    settings(&mut page, setups, trials);
    close(page)
}

/// The page of several tables, then plots of every experiment behind them.
pub fn tables(
    heading: &str,
    tables: &[ResultTable],
    groups: &[Vec<Setup>],
    trials: u64,
    records: &TrialRecords,
) -> String {
    let mut page = opened(heading);
    put(
        &mut page,
        format_args!(
            "<p class=\"lead\">{} trials; mean ± standard error over {trials} seeds.</p>\n",
            records.done()
        ),
    );
    for (index, table) in tables.iter().enumerate() {
        put(&mut page, format_args!("<h2>{}</h2>\n{}", escaped(&table.title), table.html()));
        if let Some(columns) = table.trade_off {
            page.push_str("<div class=\"pair\">\n");
            let drawing = charts::trade_off(&format!("t{index}"), table, columns);
            figure(&mut page, "Fairness against equality for several β", &drawing, "");
            page.push_str("</div>\n");
        }
    }
    for (index, setups) in groups.iter().enumerate() {
        let name = setups.first().map_or(String::new(), title);
        put(&mut page, format_args!("<h2>{}</h2>\n", escaped(&name)));
        plots(&mut page, &format!("x{index}"), setups, trials, records);
    }
    close(page)
}

fn plots(page: &mut String, id: &str, setups: &[Setup], trials: u64, records: &TrialRecords) {
    let records_of = |setup| seeds(setup, trials).filter_map(|setup| records.get(&setup)).collect();
    let entries: Vec<VariantTrials<'_>> =
        setups.iter().map(|setup| VariantTrials { setup, records: records_of(setup) }).collect();
    let Some(first) = entries.first() else { return };
    let score = score_name(first.setup.dataset);
    page.push_str("<h3>Fairness</h3>\n");
    page.push_str(
        "<p class=\"say\">Pearson’s correlation of data quality ζ with loss and staleness; dot and bar are mean and standard \
         error over trials, an upright mark is the published figure.</p>\n<div class=\"pair\">\n",
    );
    let loss = "Fairness by online loss";
    figure(page, loss, &charts::correlations(&format!("{id}-loss"), &entries, Measure::RhoLoss, loss), "");
    let wait = "Fairness by staleness";
    let waits = charts::correlations(&format!("{id}-wait"), &entries, Measure::RhoStaleness, wait);
    figure(page, wait, &waits, "");
    page.push_str("</div>\n");
    put(
        page,
        format_args!(
            "<h3>Online {score}</h3>\n<p class=\"say\">Mean over nodes and trials, each node with the model it holds; ours \
             are solid lines, baselines dashed.</p>\n"
        ),
    );
    figure(
        page,
        &format!("Online {score} over rounds"),
        &charts::curves(&format!("{id}-curves"), &entries),
        " class=\"wide\"",
    );
    let Some(ours) = entries.iter().find(|entry| entry.setup.variant.is_ours()) else { return };
    let label = ours.setup.variant.label();
    put(page, format_args!("<h3>Every node, by {label}</h3>\n<div class=\"pair\">\n"));
    let lost = charts::against_zeta(&format!("{id}-zeta-loss"), ours, NodeMeasure::Loss);
    figure(page, "Online loss against data quality", &lost, "");
    let waited = charts::against_zeta(&format!("{id}-zeta-wait"), ours, NodeMeasure::Staleness);
    figure(page, "Staleness against data quality", &waited, "");
    page.push_str("</div>\n");
}

fn lead(setups: &[Setup], trials: u64, records: &TrialRecords) -> String {
    let Some(first) = setups.first() else { return String::new() };
    let (nodes, rounds, strategies) = (first.nodes, first.rounds, setups.len());
    let noun = if strategies == 1 { "strategy" } else { "strategies" };
    let wanted = setups.iter().flat_map(|setup| seeds(setup, trials));
    let (asked, done) =
        (strategies as u64 * trials, wanted.filter(|setup| records.get(setup).is_some()).count());
    let each = if done as u64 == asked {
        format!("{trials} trials each")
    } else {
        format!("{done} of {asked} trials")
    };
    let seconds: f64 = records.iter().map(|record| record.seconds).sum();
    format!(
        "{nodes} nodes learn for {rounds} rounds; {strategies} {noun}, {each}, all strategies on the same \
         data. {} of computing.",
        super::progress::duration(seconds)
    )
}

fn settings(page: &mut String, setups: &[Setup], trials: u64) {
    let Some(setup) = setups.first() else { return };
    page.push_str("<h2>Settings</h2>\n<dl class=\"settings\">\n");
    for (name, value) in setup.flags() {
        put(
            page,
            format_args!("<div><dt>{}</dt><dd>{}</dd></div>\n", name.replace('-', " "), number_label(&value)),
        );
    }
    let command = escaped(&repeat_command(setups, trials));
    put(page, format_args!("</dl>\n<p class=\"repeat\">To repeat this: <code>{command}</code></p>\n"));
}

pub(super) fn opened(heading: &str) -> String {
    let (own, heading) = (include_str!("style.css"), escaped(heading));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>Evenhand: {heading}</title>\n<style>\n{STYLE}{own}</style>\n</head>\n<body>\n<main>\n\
         <p class=\"mark\">Evenhand</p>\n<h1>{heading}</h1>\n"
    )
}

pub(super) fn close(mut page: String) -> String {
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

pub(super) fn figure(page: &mut String, caption: &str, drawing: &str, attributes: &str) {
    put(page, format_args!("<figure{attributes}><figcaption>{caption}</figcaption>{drawing}</figure>\n"));
}
