//! Promises under arbitrary inputs, in any order.

use evenhand_federation::strategy::Evenhand;
use evenhand_testkit::federation::promises::{ModelPromise, ObservedStrategy, assert_promises};
use evenhand_testkit::federation::scripted::UniformDraws;

#[test]
fn the_promises_hold_whatever_happens() {
    const STRATEGIES: &[ObservedStrategy] = &[
        ObservedStrategy {
            new: || Box::new(Evenhand),
            model: ModelPromise::Averaged,
            newcomers_start_low: false,
        },
        ObservedStrategy {
            new: || Box::new(UniformDraws),
            model: ModelPromise::Averaged,
            newcomers_start_low: false,
        },
    ];
    assert_promises(STRATEGIES, 900);
}
