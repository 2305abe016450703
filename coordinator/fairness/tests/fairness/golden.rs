//! Figures from pingouin, scipy, mpmath and the published code (tests/golden).

use super::{DEVICES, assert_close, close};
use evenhand_fairness::{
    ContributionConfig, Estimator, FairnessError, Gram, StopRule, Utility, Weighting, contributions,
    expected_staleness,
    game::CosineGame,
    hotelling,
    measures::{autocorrelation, henze_zirkler},
    sampling_probabilities, selection_probability, shapley, temperature_for_worst_staleness,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, de::DeserializeOwned};

/// For statistics in double precision.
const EXACT: f64 = 1e-9;
/// Where updates in single precision enter.
const SINGLE: f64 = 1e-5;

#[derive(Deserialize)]
struct GoldenCases<T> {
    cases: Vec<T>,
}

fn read<T: DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json).unwrap()
}

fn decimal(text: &str) -> f64 {
    text.parse().unwrap()
}

#[derive(Deserialize)]
#[allow(non_snake_case)]
struct OneSampleCase {
    name: String,
    X: Vec<Vec<f64>>,
    mu0: Vec<f64>,
    T2: f64,
    F: f64,
    p_value: f64,
    T2_mp: Option<String>,
    F_mp: Option<String>,
    p_mp: Option<String>,
}

#[test]
fn one_sample_t2_agrees_with_forty_digits() {
    let golden: GoldenCases<OneSampleCase> = read(include_str!("../golden/a_hotelling.json"));
    assert_eq!(golden.cases.len(), 7);
    for case in golden.cases {
        let test = hotelling::one_sample(&case.X, &case.mu0).unwrap();
        let precise = |text: Option<String>, otherwise: f64| text.map_or(otherwise, |text| decimal(&text));
        let wanted =
            [precise(case.T2_mp, case.T2), precise(case.F_mp, case.F), precise(case.p_mp, case.p_value)];
        println!("{}", case.name);
        assert_close(&[test.t2, test.f, test.p_value], &wanted, EXACT);
    }
}

#[test]
fn the_paper_rule_stops_where_the_published_code_does() {
    #[derive(Deserialize)]
    #[allow(non_snake_case)]
    struct GoldenHistory {
        alpha: f64,
        tau: usize,
        phi: Vec<Vec<f64>>,
        p_values: Vec<f64>,
        stop: Vec<bool>,
        T_alpha: usize,
    }
    let golden: GoldenHistory = read(include_str!("../golden/a2_hotelling_running.json"));
    let rule = StopRule::Paper { window: golden.tau, alpha: golden.alpha };
    let tested: Vec<usize> = (0..golden.phi[0].len()).collect();
    let verdicts: Vec<_> =
        (1..=golden.phi.len()).map(|t| rule.judge(&golden.phi[..t], &tested, 1.0)).collect();
    let p_values: Vec<f64> = verdicts.iter().map(|verdict| verdict.p_value.unwrap_or(0.0)).collect();
    assert_close(&p_values, &golden.p_values, EXACT);
    assert_eq!(verdicts.iter().map(|verdict| verdict.stop).collect::<Vec<_>>(), golden.stop);
    assert_eq!(verdicts.iter().position(|verdict| verdict.stop), Some(golden.T_alpha - 1));
}

#[test]
fn the_paper_rule_stops_a_real_run_where_it_was_stopped() {
    #[derive(Deserialize)]
    #[allow(non_snake_case)]
    struct GoldenRun {
        phi: Vec<Vec<f64>>,
        sampled_dims: Vec<usize>,
        alpha: f64,
        tau: usize,
        p_values: Vec<f64>,
        T_alpha: usize,
        psi: Vec<f64>,
        probs: Vec<f64>,
    }
    let golden: GoldenRun = read(include_str!("../golden/h_mnist_phi_stream.json"));
    let phi = golden.phi;
    let rule = StopRule::Paper { window: golden.tau, alpha: golden.alpha };
    for t in 1..=phi.len() {
        let verdict = rule.judge(&phi[..t], &golden.sampled_dims, 1.0 / 150.0);
        // The run tested in single precision.
        assert!(close(verdict.p_value.unwrap_or(0.0), golden.p_values[t - 1], SINGLE), "round {t}");
        assert_eq!(verdict.stop, t == golden.T_alpha, "round {t}: {}", verdict.reason);
    }
    let mean = |node: usize| phi.iter().map(|row| row[node]).sum::<f64>() / phi.len() as f64;
    let standings: Vec<f64> = (0..phi[0].len()).map(mean).collect();
    // Kept as a running mean in single precision.
    assert_close(&standings, &golden.psi, SINGLE);
    assert_close(&sampling_probabilities(&golden.psi, 1.0 / 150.0), &golden.probs, SINGLE);
}

#[derive(Deserialize)]
struct GoldenUpdates {
    p: Vec<f64>,
    g: Vec<Vec<f32>>,
}

impl GoldenUpdates {
    fn slices(&self) -> Vec<&[f32]> {
        self.g.iter().map(Vec::as_slice).collect()
    }
}

#[test]
fn exact_contributions_agree_with_enumeration_from_vectors() {
    #[derive(Deserialize)]
    struct ExactCase {
        #[serde(flatten)]
        updates: GoldenUpdates,
        phi_inner: Vec<f64>,
        phi_cosine: Vec<f64>,
        phi_cosine_doubleweight: Vec<f64>,
    }
    let golden: GoldenCases<ExactCase> = read(include_str!("../golden/b_shapley_exact.json"));
    assert_eq!(golden.cases.len(), 6);
    for ExactCase { updates, phi_inner, phi_cosine, phi_cosine_doubleweight } in golden.cases {
        for &device in DEVICES {
            let of = |utility, weighting| {
                let config = ContributionConfig {
                    utility,
                    weighting,
                    device,
                    estimator: Estimator::Exact,
                    ..ContributionConfig::default()
                };
                contributions(&updates.slices(), &updates.p, &config, &mut ChaCha8Rng::seed_from_u64(0))
                    .unwrap()
                    .values
            };
            assert_close(&of(Utility::InnerProduct, Weighting::Once), &phi_inner, SINGLE);
            assert_close(&of(Utility::Cosine, Weighting::Once), &phi_cosine, SINGLE);
            assert_close(&of(Utility::Cosine, Weighting::Twice), &phi_cosine_doubleweight, SINGLE);
        }
    }
}

#[test]
fn the_stratified_estimate_agrees_with_the_published_code_on_its_coalitions() {
    #[derive(Deserialize)]
    struct StratifiedCase {
        #[serde(flatten)]
        updates: GoldenUpdates,
        subsets_per_node: Vec<Vec<Vec<usize>>>,
        phi_reference_float32: Vec<f64>,
        phi_float64_doubleweight: Vec<f64>,
        phi_float64_singleweight: Vec<f64>,
    }
    let golden: GoldenCases<StratifiedCase> =
        read(include_str!("../golden/b2_shapley_reference_sampled.json"));
    assert_eq!(golden.cases.len(), 2);
    for case in golden.cases {
        for &device in DEVICES {
            let gram = Gram::on(device, &case.updates.slices()).unwrap();
            let estimate = |coalition: &[f64]| {
                let mut game = CosineGame::new(&gram, &case.updates.p, coalition);
                shapley::stratified_with(&mut game, |player, size, coalition| {
                    coalition.extend(&case.subsets_per_node[player][size]);
                })
            };
            let squares: Vec<f64> = case.updates.p.iter().map(|p| p * p).collect();
            assert_close(&estimate(&squares), &case.phi_float64_doubleweight, SINGLE);
            assert_close(&estimate(&squares), &case.phi_reference_float32, SINGLE);
            assert_close(&estimate(&case.updates.p), &case.phi_float64_singleweight, SINGLE);
        }
    }
}

/// A number, or the word for an infinite one.
#[derive(Deserialize)]
#[serde(untagged)]
enum GoldenNumber {
    Finite(f64),
    Named(String),
}

impl GoldenNumber {
    fn value(&self) -> f64 {
        match self {
            Self::Finite(value) => *value,
            Self::Named(name) => decimal(name),
        }
    }
}

#[test]
fn sampling_selection_and_staleness_agree() {
    #[derive(Deserialize)]
    #[allow(non_snake_case)]
    struct SamplingCase {
        psi: Vec<f64>,
        beta: f64,
        k: u32,
        rho: Vec<f64>,
        q: Vec<f64>,
        Gamma: Vec<GoldenNumber>,
    }
    let golden: GoldenCases<SamplingCase> = read(include_str!("../golden/c_sampling.json"));
    assert_eq!(golden.cases.len(), 60);
    for case in golden.cases {
        let rho = sampling_probabilities(&case.psi, case.beta);
        assert_close(&rho, &case.rho, EXACT);
        let of = |f: fn(f64, u32) -> f64| case.rho.iter().map(|rho| f(*rho, case.k)).collect::<Vec<_>>();
        assert_close(&of(selection_probability), &case.q, EXACT);
        let gamma: Vec<f64> = case.Gamma.iter().map(GoldenNumber::value).collect();
        assert_close(&of(expected_staleness), &gamma, EXACT);
    }
}

#[test]
fn temperatures_for_a_worst_staleness_agree_and_unreachable_ones_say_so() {
    #[derive(Deserialize)]
    #[allow(non_snake_case)]
    struct TemperatureCase {
        psi: Vec<f64>,
        k: u32,
        target: f64,
        feasible: bool,
        beta_20: Option<String>,
        Gamma_limit_beta_inf: f64,
    }
    let golden: GoldenCases<TemperatureCase> = read(include_str!("../golden/d_beta_bisection.json"));
    assert_eq!(golden.cases.iter().filter(|case| !case.feasible).count(), 3);
    for case in golden.cases {
        match temperature_for_worst_staleness(&case.psi, case.k, case.target) {
            Ok(temperature) => {
                assert!(case.feasible);
                assert!(close(temperature, decimal(&case.beta_20.unwrap()), EXACT), "{temperature}");
            }
            Err(FairnessError::Unreachable { reachable, .. }) => {
                assert!(!case.feasible);
                let limit = format!("{}", expected_staleness(1.0 / case.psi.len() as f64, case.k));
                assert!(close(decimal(&limit), case.Gamma_limit_beta_inf, EXACT));
                assert!(reachable.contains(&limit), "{reachable}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn henze_zirkler_agrees_with_pingouin() {
    #[derive(Deserialize)]
    #[allow(non_snake_case)]
    struct NormalityCase {
        X: Vec<Vec<f64>>,
        hz: f64,
        p_value: f64,
    }
    let golden: GoldenCases<NormalityCase> = read(include_str!("../golden/f_henze_zirkler.json"));
    assert_eq!(golden.cases.len(), 3);
    for case in golden.cases {
        let test = henze_zirkler(&case.X).unwrap();
        assert_close(&[test.statistic, test.p_value], &[case.hz, case.p_value], EXACT);
    }
}

#[test]
fn autocorrelations_agree_with_statsmodels() {
    #[derive(Deserialize)]
    struct AutocorrelationCase {
        x: Vec<f64>,
        acf: Vec<f64>,
        bound95: f64,
    }
    let golden: GoldenCases<AutocorrelationCase> = read(include_str!("../golden/g_acf.json"));
    assert_eq!(golden.cases.len(), 2);
    for case in golden.cases {
        let found = autocorrelation(&case.x, case.acf.len() - 1).unwrap();
        assert_close(&found.by_lag, &case.acf, EXACT);
        assert!(close(found.bound95, case.bound95, EXACT));
    }
}
