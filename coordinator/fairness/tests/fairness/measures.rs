//! Statistics of a run.

use super::{assert_close, close};
use evenhand_fairness::{
    hotelling::NoStatistic,
    measures::{Summary, autocorrelation, henze_zirkler, pearson},
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
fn a_summary_is_over_all_nodes() {
    assert_eq!(Summary::of(&[]), None);
    let Summary { mean, min, max, std } = Summary::of(&[0.6, 0.85]).unwrap();
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
