//! Whether low standings find the nodes of low quality.

/// The share of `low_quality` nodes found among as many nodes of lowest standing; none if there are no such nodes.
pub fn recall(standings: &[f64], low_quality: &[usize]) -> Option<f64> {
    let mut order: Vec<usize> = (0..standings.len()).collect();
    order.sort_by(|&a, &b| standings[a].total_cmp(&standings[b]));
    let suspects = order.get(..low_quality.len())?;
    let found = low_quality.iter().filter(|node| suspects.contains(node)).count();
    (!low_quality.is_empty()).then(|| found as f64 / low_quality.len() as f64)
}
