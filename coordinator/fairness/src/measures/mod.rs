//! Statistics of a run: correlation, normality, autocorrelation, spread over the nodes.

mod autocorrelation;
mod henze_zirkler;
mod pearson;
mod summary;

pub use autocorrelation::{Autocorrelation, autocorrelation};
pub use henze_zirkler::{HenzeZirkler, henze_zirkler};
pub use pearson::pearson;
pub use summary::Summary;
