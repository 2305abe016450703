//! What a run reports about itself.

use super::{assert_close, close};
use evenhand_fairness::{
    hotelling::NoStatistic,
    measures::{Online, Staleness, Summary, autocorrelation, henze_zirkler, pearson, recall},
};

#[test]
fn pearson_knows_lines_and_what_does_not_vary() {
    let x = [1.0, 2.0, 4.0, 8.0];
    assert!(close(pearson(&x, &x.map(|x| 3.0 - 2.0 * x)).unwrap(), -1.0, 1e-12));
    // By hand: Σxy = 6, Σxx = 10, Σyy = 6 around the means.
    assert!(close(
        pearson(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 4.0, 5.0, 4.0, 5.0]).unwrap(),
        6.0 / 60f64.sqrt(),
        1e-12
    ));
    assert_eq!(pearson(&x, &[1.0; 4]), None);
    let many: Vec<f64> = (0..30).map(f64::from).collect();
    assert_eq!(pearson(&many, &[0.04; 30]), None, "30 × 0.04 is not exactly 1.2");
    assert_eq!(pearson(&x, &[1.0, 2.0]), None);
    assert_eq!(pearson(&[], &[]), None);
}

#[test]
fn recall_counts_low_quality_nodes_among_the_lowest() {
    let standings = [0.5, 0.1, 0.4, 0.2, 0.3];
    assert_eq!(recall(&standings, &[1, 3]), Some(1.0));
    assert_eq!(recall(&standings, &[1, 0]), Some(0.5));
    assert_eq!(recall(&standings, &[0]), Some(0.0));
    assert_eq!(recall(&standings, &[]), None);
}

#[test]
fn staleness_follows_the_rounds() {
    let mut staleness = Staleness::new(3);
    for drawn in [&[0, 1][..], &[0], &[], &[1], &[0]] {
        staleness.observe(drawn);
    }
    // By round: node 0: 0 0 1 2 0; node 1: 0 1 2 0 1; node 2: 1 2 3 4 5.
    assert_eq!(staleness.current(), [0, 1, 5]);
    assert_eq!(staleness.longest(), [2, 2, 5]);
    assert_eq!(staleness.draws(), [3, 2, 0]);
    assert_close(&staleness.mean(), &[0.6, 0.8, 3.0], 1e-12);
    assert_close(&staleness.rounds_per_draw(), &[5.0 / 3.0, 2.5, f64::INFINITY], 1e-12);
}

#[test]
fn online_performance_is_a_mean_over_rounds_then_nodes() {
    let mut online = Online::new(2);
    assert_eq!(online.summary(), None);
    online.observe(&[0.5, 0.7]);
    online.observe(&[0.7, 1.0]);
    assert_close(online.means(), &[0.6, 0.85], 1e-12);
    let Summary { mean, min, max, std } = online.summary().unwrap();
    assert_close(&[mean, min, max, std], &[0.725, 0.6, 0.85, 0.125], 1e-12);
}

#[test]
fn tests_without_a_statistic_say_why() {
    assert_eq!(autocorrelation(&[2.0; 9], 3), None);
    assert_eq!(henze_zirkler(&[]), Err(NoStatistic::TooFew { needed: 2 }));
    assert_eq!(henze_zirkler(&[vec![1.0, 2.0], vec![2.0, 1.0]]), Err(NoStatistic::TooFew { needed: 3 }));
    let constant: Vec<Vec<f64>> = (0..9).map(|i| vec![f64::from(i), 1.0]).collect();
    assert_eq!(henze_zirkler(&constant), Err(NoStatistic::Constant { column: 1 }));
    let dependent: Vec<Vec<f64>> = (0..9).map(|i| vec![f64::from(i * i), f64::from(2 * i * i)]).collect();
    assert_eq!(henze_zirkler(&dependent), Err(NoStatistic::Singular));
}
