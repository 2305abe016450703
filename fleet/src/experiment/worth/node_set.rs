//! Sets of nodes.

/// The most nodes that a set can have.
pub const NODES_MAX: usize = 128;

/// A set of nodes, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeSet(u128);

impl NodeSet {
    /// No node.
    pub const EMPTY: Self = Self(0);

    /// All of `nodes` nodes.
    pub fn all(nodes: usize) -> Self {
        Self(if nodes >= NODES_MAX { u128::MAX } else { (1 << nodes) - 1 })
    }

    /// The nodes whose bits are set.
    pub fn of_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// True if `node` is in it.
    pub fn contains(self, node: usize) -> bool {
        node < NODES_MAX && self.0 >> node & 1 == 1
    }

    /// Its nodes, rising.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..NODES_MAX).filter(move |node| self.contains(*node))
    }

    /// The number of its nodes.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// True if it has none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The other ones of `nodes` nodes.
    pub fn complement(self, nodes: usize) -> Self {
        Self(Self::all(nodes).0 & !self.0)
    }

    /// The set as text: hexadecimal digits.
    pub fn text(self) -> String {
        format!("{:x}", self.0)
    }

    /// The set that [`text`](Self::text) wrote.
    pub fn parse(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}

impl FromIterator<usize> for NodeSet {
    fn from_iter<I: IntoIterator<Item = usize>>(nodes: I) -> Self {
        Self(nodes.into_iter().filter(|node| *node < NODES_MAX).fold(0, |bits, node| bits | 1 << node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_complements_and_texts() {
        let set: NodeSet = [0, 3, 127].into_iter().collect();
        assert_eq!((set.len(), set.contains(3), set.contains(4)), (3, true, false));
        assert_eq!(set.complement(5), [1, 2, 4].into_iter().collect());
        assert_eq!(NodeSet::parse(&set.text()), Some(set));
        assert_eq!(NodeSet::all(128).len(), 128);
        assert_eq!(
            (NodeSet::all(3), NodeSet::EMPTY.complement(3)),
            (NodeSet::of_bits(7), NodeSet::of_bits(7))
        );
        assert_eq!(NodeSet::parse("g"), None);
    }
}
