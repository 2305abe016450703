//! The report of a simulated run, until the fleet gives its rules and its round log.

mod charts;
pub mod outcome;
mod words;

use self::charts::{Against, LINES_MAX, Over, QUALITIES};
use self::outcome::{Ended, Figures, Outcome, Teller, bytes_text, probability_decimals};
use self::words::Words;
use crate::plot::{WIDTH, escaped, extent, put, signed};

use crate::STYLE;

/// The whole page.
pub fn html(outcome: &Outcome, figures: &Figures) -> String {
    let mut page = String::with_capacity(256 * 1024);
    let heading = headline(figures);
    let words = outcome.teller.words();
    put(
        &mut page,
        format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>Evenhand: {heading}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <p class=\"mark\">Evenhand</p>\n<h1>{heading}</h1>\n<p class=\"lead\">{}</p>\n",
            lead(outcome, figures)
        ),
    );
    if outcome.ended == Ended::Interrupted {
        let (done, wanted) = (figures.rounds, outcome.settings.rounds);
        put(
            &mut page,
            format_args!(
                "<p class=\"notice\">{}: {done} of {wanted} rounds were done.</p>\n",
                words.unfinished
            ),
        );
    }
    tiles(&mut page, outcome, figures);
    if outcome.rounds.is_empty() {
        page.push_str("<p class=\"notice\">No round was finished, so there is nothing to plot.</p>\n");
    } else {
        key(&mut page, figures, words);
        plots(&mut page, outcome, figures);
    }
    table(&mut page, figures, words);
    settings(&mut page, outcome);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn headline(figures: &Figures) -> &'static str {
    match figures.rho_staleness {
        Some(rho) if rho >= 0.6 => "Those who gave more waited less",
        Some(rho) if rho > 0.0 => "Those who gave more waited a little less",
        Some(_) => "Who gave more did not wait less in this run",
        None => "Contributions were measured; nobody has been drawn yet",
    }
}

fn lead(outcome: &Outcome, figures: &Figures) -> String {
    let nodes = figures.nodes.len();
    let exploring = match figures.t_alpha {
        Some(t) => format!(
            "For {t} rounds everybody took part while contributions were measured; then {} nodes a round received \
             the latest model, drawn by their standing.",
            outcome.settings.k
        ),
        None => "Everybody took part in every round; the stop rule had not yet found the standings settled."
            .to_owned(),
    };
    format!(
        "{nodes} {} learned one model together in {} rounds. {exploring}",
        outcome.teller.words().nodes,
        figures.rounds
    )
}

fn tiles(page: &mut String, outcome: &Outcome, figures: &Figures) {
    let rho = |rho: Option<f64>| rho.map_or("–".to_owned(), |rho| signed(rho, 2));
    let loss = figures.online_loss.map_or(("–".to_owned(), String::new()), |loss| {
        (
            format!("{:.4}", loss.std),
            format!("from {:.4} to {:.4}, mean {:.4}", loss.min, loss.max, loss.mean),
        )
    });
    let stop = match figures.t_alpha {
        Some(round) if outcome.p_ended_exploring() => {
            (format!("round {round}"), format!("p reached α = {}", outcome.settings.strictness))
        }
        Some(round) => (format!("round {round}"), "before p reached α".to_owned()),
        None => ("not yet".to_owned(), format!("p stayed below α = {}", outcome.settings.strictness)),
    };
    let wire = (
        bytes_text(figures.bytes_up + figures.bytes_down),
        format!("{} up, {} down", bytes_text(figures.bytes_up), bytes_text(figures.bytes_down)),
    );
    let time = (
        format!("{:.1} s", figures.seconds_training),
        format!("{:.2} s closing rounds", figures.seconds_fairness),
    );
    let words = outcome.teller.words();
    let fair = "Pearson; 1 is perfectly fair";
    let mut tiles = vec![
        (format!("Fairness: {} with waiting", words.symbol), rho(figures.rho_staleness), fair.to_owned()),
        (format!("Fairness: {} with {}", words.symbol, words.loss), rho(figures.rho_loss), fair.to_owned()),
        (format!("Equality: spread of {}", words.loss), loss.0, loss.1),
        ("Exploring ended".into(), stop.0, stop.1),
    ];
    if outcome.teller == Teller::Fleet {
        tiles.push(("On the wire".into(), wire.0, wire.1));
        tiles.push(("Training, all nodes".into(), time.0, time.1));
    }
    page.push_str("<dl class=\"tiles\">\n");
    for (name, value, note) in tiles {
        put(
            page,
            format_args!("<div class=\"tile\"><dt>{name}</dt><dd>{value}<small>{note}</small></dd></div>\n"),
        );
    }
    page.push_str("</dl>\n");
}

fn key(page: &mut String, figures: &Figures, words: &Words) {
    let (low, high) = extent(figures.nodes.iter().map(|node| node.zeta));
    let width = (high - low) / QUALITIES as f64;
    let Words { order, least, most, .. } = words;
    put(
        page,
        format_args!("<ul class=\"key\" aria-label=\"Colours of {order}\"><li>Colours, by {order}:</li>"),
    );
    for class in 0..QUALITIES {
        let from = low + class as f64 * width;
        let word = match class {
            0 => format!(" ({least})"),
            c if c + 1 == QUALITIES => format!(" ({most})"),
            _ => String::new(),
        };
        put(page, format_args!("<li><i class=\"z{class}\"></i>{from:.2} to {:.2}{word}</li>", from + width));
    }
    page.push_str("</ul>\n");
}

fn plots(page: &mut String, outcome: &Outcome, figures: &Figures) {
    let waits = outcome.staleness();
    let words = outcome.teller.words();
    let n = figures.nodes.len();
    let unit = if n <= LINES_MAX { "one line a node" } else { "median and middle 80 % of each class" };

    section(
        page,
        "What each node gave",
        "A node's standing ψ is the running mean of its Shapley values: how much its updates moved the common model \
         the right way. Measuring ends when the stop rule finds the standings settled.",
    );
    page.push_str("<div class=\"pair\">\n");
    let standing =
        Over { id: "standing", title: "Standings over rounds", y_name: "standing ψ", width: WIDTH, from: 0 };
    let standings =
        charts::over_rounds(&standing, outcome, figures, |round, node| outcome.rounds[round].standings[node]);
    figure(page, &format!("Standings, {unit}"), &standings, "");
    figure(page, "The stop rule", &charts::p_value(outcome, figures), "");
    page.push_str("</div>\n");

    section(
        page,
        "What each node is due",
        "Better standing, better odds; the temperature β decides how much better. Nobody's odds are zero, so nobody \
         is left behind for good.",
    );
    page.push_str("<div class=\"pair\">\n");
    let odds = Against {
        id: "odds",
        title: &format!("Sampling probability against {}", words.order),
        y_name: "sampling probability ϱ",
        rho: None,
        reference: Some((1.0 / n.max(1) as f64, "equal share".to_owned())),
        words,
    };
    figure(
        page,
        "Odds of one draw",
        &charts::against_zeta(&odds, figures, |node| node.sampling_probability),
        "",
    );
    let waiting = Against {
        id: "staleness",
        title: &format!("Mean staleness against {}", words.order),
        y_name: "mean staleness, rounds",
        rho: figures.rho_staleness,
        reference: None,
        words,
    };
    let waited = charts::against_zeta(&waiting, figures, |node| node.mean_staleness);
    figure(page, "Mean wait for the latest model", &waited, "");
    page.push_str("</div>\n");
    figure(
        page,
        "Rounds since the model was last received",
        &charts::staleness(outcome, figures, &waits),
        " class=\"wide\"",
    );

    section(page, "What it meant for forecasts", words.loss_meaning);
    let loss = Over {
        id: "loss",
        title: &format!("{} over rounds", capital(words.loss)),
        y_name: words.loss,
        width: 2.0 * WIDTH,
        from: 0,
    };
    let losses =
        charts::over_rounds(&loss, outcome, figures, |round, node| outcome.rounds[round].online_losses[node]);
    figure(page, &format!("{}, {unit}", capital(words.loss)), &losses, " class=\"wide\"");
    page.push_str("<div class=\"pair\">\n");
    // Losses on different readings cannot be held against each other.
    if outcome.teller == Teller::Fleet {
        let excess = outcome.excess_losses();
        let cost = Over {
            id: "cost",
            title: "What waiting cost",
            y_name: "online loss above the best-placed node's, running mean",
            width: WIDTH,
            from: figures.t_alpha.map_or(0, |t| t as usize),
        };
        let costs = charts::over_rounds(&cost, outcome, figures, |round, node| excess[round][node]);
        figure(page, &format!("What waiting cost, {unit}"), &costs, "");
    }
    let mean_loss = Against {
        id: "mean-loss",
        title: &format!("Mean {} against {}", words.loss, words.order),
        y_name: &format!("mean {}", words.loss),
        rho: figures.rho_loss,
        reference: None,
        words,
    };
    let lost = charts::against_zeta(&mean_loss, figures, |node| node.online_loss);
    figure(page, &format!("Mean {}", words.loss), &lost, "");
    page.push_str("</div>\n");
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn section(page: &mut String, title: &str, words: &str) {
    put(page, format_args!("<h2>{title}</h2>\n<p class=\"say\">{words}</p>\n"));
}

fn figure(page: &mut String, caption: &str, drawing: &str, attributes: &str) {
    put(page, format_args!("<figure{attributes}><figcaption>{caption}</figcaption>{drawing}</figure>\n"));
}

fn table(page: &mut String, figures: &Figures, words: &Words) {
    let tall = if figures.nodes.len() > 2 * LINES_MAX { " tall" } else { "" };
    put(
        page,
        format_args!(
            "<h2>Every node</h2>\n<p class=\"say\">Staleness counts rounds since the model was last received, over the \
             rounds in which nodes were drawn.</p>\n<div class=\"scroll{tall}\" tabindex=\"0\" role=\"region\" aria-label=\"Every node\">\
             <table>\n<thead><tr><th scope=\"col\">node</th>\
             <th scope=\"col\">{}</th><th scope=\"col\">standing ψ</th><th scope=\"col\">probability ϱ</th>\
             <th scope=\"col\">drawn</th><th scope=\"col\">mean staleness</th><th scope=\"col\">longest</th>\
             <th scope=\"col\">{}</th></tr></thead>\n<tbody>\n",
            words.symbol, words.loss
        ),
    );
    let decimals = probability_decimals(figures.nodes.len());
    for node in &figures.nodes {
        put(
            page,
            format_args!(
                "<tr><th scope=\"row\">{}</th><td>{:.2}</td><td>{}</td><td>{:.decimals$}</td><td>{}</td><td>{:.2}</td>\
                 <td>{}</td><td>{:.4}</td></tr>\n",
                escaped(&node.id),
                node.zeta,
                signed(node.standing, 5),
                node.sampling_probability,
                node.drawn,
                node.mean_staleness,
                node.longest_staleness,
                node.online_loss
            ),
        );
    }
    page.push_str("</tbody>\n</table></div>\n");
}

fn settings(page: &mut String, outcome: &Outcome) {
    page.push_str("<h2>Settings</h2>\n<dl class=\"settings\">\n");
    for (name, value) in outcome.settings.shown() {
        put(page, format_args!("<div><dt>{name}</dt><dd>{}</dd></div>\n", escaped(&value)));
    }
    let (repeat, command) = (outcome.teller.words().repeat, escaped(&outcome.settings.command));
    put(page, format_args!("</dl>\n<p class=\"repeat\">{repeat}: <code>{command}</code></p>\n"));
}
