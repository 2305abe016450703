//! Labels and values that a report prints for its caller.

/// All that a report shows beside the rules and the round log.
#[derive(Debug, Clone)]
pub struct ReportSource {
    /// A noun for the nodes, in the plural.
    pub node_noun: String,
    /// The value that nodes are ordered and coloured by.
    pub annotation: NodeAnnotation,
    /// The losses that are known.
    pub losses: LossSeries,
    /// Columns beside the report's own, at the end of the table of nodes.
    pub columns: Vec<NodeColumn>,
    /// Figures beside the report's own, at the top of the page.
    pub tiles: Vec<ReportTile>,
    /// Names and values beside the rules, under "Settings".
    pub settings: Vec<(String, String)>,
    /// If not all rounds are done: one word or two for that.
    pub unfinished: Option<String>,
    /// The purpose of a command, and the command.
    pub command: (String, String),
}

/// One value for each node, and the words for it.
#[derive(Debug, Clone)]
pub struct NodeAnnotation {
    /// A symbol or a short name, for columns and hovering.
    pub symbol: String,
    /// Its name in a sentence.
    pub name: String,
    /// Its name beside an axis, with what its ends mean.
    pub axis: String,
    /// The meaning of a low value.
    pub low: String,
    /// The meaning of a high value.
    pub high: String,
    /// The order of a list by ascending values.
    pub low_on_top: String,
    /// By position in the log; the report orders nodes by it, ascending.
    pub values: Vec<f64>,
}

/// One loss for each node and round, and the words for it.
#[derive(Debug, Clone)]
pub struct LossSeries {
    /// Its name in a sentence.
    pub name: String,
    /// Its meaning, in full sentences.
    pub meaning: String,
    /// True if all nodes are measured on the same samples, so that they can be compared.
    pub comparable: bool,
    /// By round, then by position in the log.
    pub values: Vec<Vec<f64>>,
}

/// One more column of the table of nodes.
#[derive(Debug, Clone)]
pub struct NodeColumn {
    /// Its head.
    pub name: String,
    /// By position in the log.
    pub cells: Vec<String>,
}

/// One figure at the top of the page.
#[derive(Debug, Clone)]
pub struct ReportTile {
    /// Its name.
    pub name: String,
    /// The figure.
    pub value: String,
    /// A remark beside it.
    pub note: String,
}

impl LossSeries {
    /// The mean over rounds of each of `nodes` nodes; 0 where there are no rounds.
    pub fn means(&self, nodes: usize) -> Vec<f64> {
        let of_node =
            |node: usize| crate::mean(self.values.iter().map(|round| round[node]), self.values.len());
        (0..nodes).map(of_node).collect()
    }
}
