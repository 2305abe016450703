//! The node of an Evenhand federation: reads a meter, trains, forecasts.
