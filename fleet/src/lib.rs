//! Simulated fleets, experiments, calculators and reports of Evenhand.
