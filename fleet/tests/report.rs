//! The HTML report is one well-formed file that needs nothing but itself.
#![allow(clippy::unwrap_used)]

mod support;

use evenhand_fleet::outcome::{Ended, Outcome};
use evenhand_fleet::report;

fn page(outcome: &Outcome) -> String {
    report::html(outcome, &outcome.figures())
}

/// The page without its doctype, as XML.
fn parsed(page: &str) -> roxmltree::Document<'_> {
    roxmltree::Document::parse(page.strip_prefix("<!doctype html>\n").unwrap()).unwrap()
}

fn count(document: &roxmltree::Document<'_>, tag: &str) -> usize {
    document.descendants().filter(|node| node.has_tag_name(tag)).count()
}

#[test]
fn it_refers_to_nothing_outside() {
    for nodes in [3, 30, 300] {
        let page = page(&support::drawn_by(nodes, 40, |round| vec![round as usize % nodes]));
        for reference in ["http:", "https:", "//", "src=", "href=", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(reference), "{nodes} nodes: the page contains {reference}");
        }
    }
}

#[test]
fn it_is_well_formed_and_every_plot_says_what_it_shows() {
    for nodes in [2, 12, 25, 200] {
        let page = page(&support::drawn_by(nodes, 40, |round| vec![round as usize % nodes]));
        let document = parsed(&page);
        let plots: Vec<_> = document.descendants().filter(|node| node.has_tag_name("svg")).collect();
        assert_eq!(
            plots.len(),
            8,
            "standings, p-value, odds, mean wait, waits, losses, what waiting cost, mean loss"
        );
        for plot in plots {
            let words =
                |tag: &str| plot.children().find(|child| child.has_tag_name(tag)).and_then(|n| n.text());
            assert!(words("title").is_some_and(|text| !text.is_empty()));
            assert!(words("desc").is_some_and(|text| !text.is_empty()));
        }
        assert_eq!(count(&document, "tr"), nodes + 1, "one row a node, and the head");
        assert!(!page.contains("NaN") && !page.contains("inf"));
    }
}

#[test]
fn many_nodes_become_bands_and_the_page_stays_small() {
    let few = page(&support::drawn_by(24, 60, |round| vec![round as usize % 24]));
    let many = page(&support::drawn_by(2000, 60, |round| vec![round as usize % 2000]));
    assert!(!few.contains("class=\"band") && many.contains("class=\"band"));
    assert!(many.len() < 2_000_000, "{} bytes", many.len());
}

#[test]
fn a_run_that_was_interrupted_says_so() {
    let mut outcome = support::drawn_by(6, 40, |_| vec![0]);
    outcome.rounds.truncate(3);
    outcome.ended = Ended::Interrupted;
    assert!(page(&outcome).contains("Interrupted: 3 of 40 rounds were done."));
    outcome.rounds.clear();
    let page = page(&outcome);
    assert!(page.contains("No round was finished"));
    assert_eq!(count(&parsed(&page), "svg"), 0);
}

#[test]
fn names_cannot_become_markup() {
    let mut outcome = support::small();
    outcome.members[0].id = "<b>&\"".into();
    let page = page(&outcome);
    assert!(!page.contains("<b>"));
    parsed(&page);
}
