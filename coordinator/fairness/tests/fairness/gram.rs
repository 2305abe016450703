//! The blocked product against plain sums in double precision.

use super::DEVICES;
use evenhand_fairness::{Device, Gram};
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

/// The error allowed, relative to ‖Δθᵢ‖‖Δθⱼ‖.
fn tolerance(device: Device) -> f64 {
    match device {
        Device::Cpu => 1e-6,
        Device::Gpu => 1e-5,
    }
}

fn are_right(nodes: usize, dim: usize) {
    let updates = updates(nodes, dim);
    let norms: Vec<f64> = updates.iter().map(|update| dot(update, update).sqrt()).collect();
    for &device in DEVICES {
        let gram = Gram::on(device, &slices(&updates)).unwrap();
        for i in 0..nodes {
            for j in 0..=i {
                let error = (gram.get(i, j) - dot(&updates[i], &updates[j])).abs() / (norms[i] * norms[j]);
                assert!(
                    error < tolerance(device),
                    "{device:?} {nodes} × {dim} at ({i}, {j}): relative error {error}"
                );
                assert_eq!(gram.get(i, j), gram.get(j, i));
            }
        }
    }
}

#[test]
fn products_are_right_at_every_edge_of_the_blocking() {
    for nodes in [1, 2, 3, 4, 5, 6, 7, 13, 31, 32, 33, 47, 48, 49, 65] {
        for dim in [1, 15, 16, 17, 1023, 1025, 2049] {
            are_right(nodes, dim);
        }
    }
    are_right(97, 2048);
    are_right(3, 300_001);
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
    for &device in DEVICES {
        let gram = Gram::on(device, &[&[], &[]]).unwrap();
        assert_eq!((gram.size(), gram.get(1, 0)), (2, 0.0));
        assert_eq!(Gram::on(device, &[]).unwrap().size(), 0);
    }
}

#[cfg(not(feature = "gpu"))]
#[test]
fn a_build_without_gpu_says_so() {
    let error = Gram::on(Device::Gpu, &[&[1.0]]).unwrap_err().to_string();
    assert_eq!(error, "device = gpu: this program was built without the cargo feature `gpu`");
}
