//! What a run reports about itself.

mod autocorrelation;
mod henze_zirkler;
mod online;
mod pearson;
mod recall;
mod staleness;

pub use autocorrelation::{Autocorrelation, autocorrelation};
pub use henze_zirkler::{HenzeZirkler, henze_zirkler};
pub use online::{Online, Summary};
pub use pearson::pearson;
pub use recall::recall;
pub use staleness::Staleness;
