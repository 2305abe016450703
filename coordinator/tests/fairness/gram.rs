//! The blocked product against plain sums in double precision.

use evenhand_coordinator::fairness::Gram;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn updates(nodes: usize, dim: usize) -> Vec<Vec<f32>> {
    let mut rng = ChaCha8Rng::seed_from_u64((nodes * 1_000_003 + dim) as u64);
    // Scales far apart, so that errors relative to the largest would not pass.
    (0..nodes)
        .map(|i| (0..dim).map(|_| 10f32.powi(i as i32 % 7 - 3) * (rng.random::<f32>() - 0.4)).collect())
        .collect()
}

fn slices(updates: &[Vec<f32>]) -> Vec<&[f32]> {
    updates.iter().map(Vec::as_slice).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

#[test]
fn products_are_right_at_every_edge_of_the_blocking() {
    for nodes in [1, 2, 3, 4, 5, 6, 7, 13, 47, 48, 49, 97] {
        for dim in [1, 15, 16, 17, 2047, 2048, 2049, 4999] {
            let updates = updates(nodes, dim);
            let gram = Gram::of(&slices(&updates));
            for i in 0..nodes {
                for j in 0..nodes {
                    let scale = (dot(&updates[i], &updates[i]) * dot(&updates[j], &updates[j])).sqrt();
                    let error = (gram.get(i, j) - dot(&updates[i], &updates[j])).abs() / scale;
                    assert!(error < 1e-6, "{nodes} × {dim} at ({i}, {j}): relative error {error}");
                }
            }
        }
    }
}

#[test]
fn the_number_of_cores_does_not_change_a_bit() {
    let updates = updates(60, 30_011);
    let on = |cores: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(cores).build().unwrap();
        pool.install(|| Gram::of(&slices(&updates)))
    };
    assert_eq!(on(1), on(5));
}

#[test]
fn updates_without_values_have_products_of_zero() {
    let gram = Gram::of(&[&[], &[]]);
    assert_eq!((gram.size(), gram.get(1, 0)), (2, 0.0));
    assert_eq!(Gram::of(&[]).size(), 0);
}
