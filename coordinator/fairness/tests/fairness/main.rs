//! The statistics against published figures, games with known answers, and their own guarantees.
#![allow(clippy::unwrap_used)]

use evenhand_fairness::Device;

mod contributions;
mod direction;
mod games;
mod golden;
mod gram;
mod incentive;
mod measurement;
mod measures;
mod reference;
mod samplers;
mod staleness;
mod stop;

/// The devices that the suite runs on. With the feature `gpu` a GPU has to be there, be it one in software.
const DEVICES: &[Device] = if cfg!(feature = "gpu") { &[Device::Cpu, Device::Gpu] } else { &[Device::Cpu] };

/// True if two figures agree to a relative tolerance.
fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

#[track_caller]
fn assert_close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!(close(*a, *b, tolerance), "[{i}]: {a} is not {b} to {tolerance}");
    }
}
