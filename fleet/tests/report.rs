//! The HTML report is one well-formed file that needs nothing but itself.
#![allow(clippy::unwrap_used)]

mod support;

use evenhand_fleet::sim::{RecordedRun, RunEnd};

fn page(run: &RecordedRun) -> String {
    run.report_html()
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
    let mut run = support::drawn_by(6, 40, |_| vec![0]);
    run.log.rounds.truncate(3);
    run.online.truncate(3);
    run.ended = RunEnd::Interrupted;
    assert!(page(&run).contains("Interrupted: 3 of 40 rounds were done."));
    run.log.rounds.clear();
    run.online.clear();
    let page = page(&run);
    assert!(page.contains("No round was finished"));
    assert_eq!(count(&parsed(&page), "svg"), 0);
}

#[test]
fn names_cannot_become_markup() {
    let run = support::small_of(["<b>&\"", "b", "c"]);
    let page = page(&run);
    assert!(!page.contains("<b>"));
    parsed(&page);
}
