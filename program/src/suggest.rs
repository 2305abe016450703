//! "Did you mean …?": the known name nearest to a misspelt one.

/// The known name with the smallest edit distance to `unknown`, if at most half of its characters differ.
///
/// Insertions, deletions, replacements and swaps of neighbours count one each; of equally near names, the first in
/// alphabetical order is returned.
///
/// ```
/// use evenhand_program::suggest::nearest;
///
/// assert_eq!(nearest("ulr", ["username", "url"]), Some("url"));
/// assert_eq!(nearest("zzzzzzzz", ["username", "url"]), None);
/// ```
pub fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(unknown, name), name))
        .filter(|(distance, name)| *distance <= name.chars().count() / 2)
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_optimal_string_alignment() {
        for (a, b, expected) in
            [("", "", 0), ("url", "ulr", 1), ("noise", "nose", 1), ("kitten", "sitting", 3), ("ab", "", 2)]
        {
            assert_eq!(strsim::osa_distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn names_that_differ_in_more_than_half_are_not_suggested() {
        assert_eq!(nearest("nose", ["noise", "nodes"]), Some("noise"));
        assert_eq!(nearest("nowhere", ["url", "listen"]), None);
        assert_eq!(nearest("anything", []), None);
    }
}
