//! Integration tests of Evenhand over real brokers, processes and devices.
