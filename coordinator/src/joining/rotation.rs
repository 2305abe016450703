//! Rotation of the coordinator's key: the new one is saved, then told; the old one is accepted for a while.

use std::path::Path;
use std::time::{Duration, SystemTime};

use evenhand_program::entropy;
use evenhand_seal::Entropy;

use super::CoordinatorKeys;
use crate::shell::CoordinatorHandle;

/// Milliseconds of a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// New keys in `folder`, while no coordinator runs on it.
pub fn rotate_file(folder: &Path, overlap_days: u32) -> Result<CoordinatorKeys, String> {
    let seed = entropy::seed().map_err(|error| format!("the system gives no random bytes: {error}"))?;
    let mut entropy = Entropy::from_seed(seed);
    let keys = CoordinatorKeys::load(folder).map_err(|error| error.to_string())?;
    let keys = keys.ok_or("there is no key to be replaced yet; the first start makes one")?;
    let until_ms = now_ms().saturating_add(DAY_MS.saturating_mul(overlap_days.into()));
    let keys = keys.rotated(&mut entropy, until_ms);
    keys.save(folder).map_err(|error| error.to_string())?;
    Ok(keys)
}

/// New keys for a running coordinator.
pub async fn rotate(folder: &Path, handle: &CoordinatorHandle, overlap_days: u32) -> Result<(), String> {
    let keys = rotate_file(folder, overlap_days)?;
    tracing::info!(key = %keys.current.public(), overlap_days, "operator command: rotate key");
    end_overlap_in_time(&keys, handle.clone());
    handle.set_keys(keys).await.map_err(|error| error.to_string())
}

/// Ends the overlap when it is over, if the coordinator still runs then with these keys.
pub fn end_overlap_in_time(keys: &CoordinatorKeys, handle: CoordinatorHandle) {
    let Some((_, until_ms)) = &keys.previous else { return };
    let (left, key) = (Duration::from_millis(until_ms.saturating_sub(now_ms())), keys.current.public());
    tokio::spawn(async move {
        tokio::time::sleep(left).await;
        handle.end_overlap(key);
    });
}
