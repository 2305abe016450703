//! The commented default file, assembled from the sections' types.
//!
//! A section is a struct in a source file of its own. Its fields are the keys: serde gives their names, `Default` their
//! values, and their doc comments the explanations. So a key is written in one file, and the printed file cannot differ from
//! the program.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The section `[name]` of a default file: every key with its explanation and, commented out, its default.
///
/// `source` is the file that defines `T`, by `include_str!`. A key without a default has a doc line ``Example: `key = "value"` ``,
/// which is shown instead. The values of enumerations are listed.
///
/// ```
/// /// Persistent state.
/// #[derive(serde::Serialize, serde::Deserialize)]
/// #[serde(default, deny_unknown_fields)]
/// pub struct StateConfig {
///     /// The folder of the state.
///     pub folder: String,
/// }
/// impl Default for StateConfig {
///     fn default() -> Self {
///         Self { folder: "state".into() }
///     }
/// }
/// // include_str!("state.rs")
/// let source = "
/// /// Persistent state.
/// pub struct StateConfig {
///     /// The folder of the state.
///     pub folder: String,
/// }
/// ";
/// let text = evenhand_program::config::document::section::<StateConfig>("state", source);
/// assert_eq!(text, "## Persistent state.\n[state]\n## The folder of the state.\n# folder = \"state\"\n");
/// ```
pub fn section<T: Default + Serialize + DeserializeOwned>(name: &str, source: &str) -> String {
    let documented = DocumentedStruct::find(source, short_type_name::<T>());
    let defaults = toml::to_string(&T::default()).unwrap_or_default();
    let mut lines = explanations(&documented.docs);
    lines.push(format!("[{name}]"));
    for (key, docs) in &documented.fields {
        lines.extend(explanations(docs));
        let default = defaults.lines().find(|line| line.split(" = ").next() == Some(key));
        if let Some(values) = default.and_then(|_| values::<T>(key)) {
            lines.push(format!("## Values: {values}."));
        }
        lines.extend(default.map(|default| format!("# {default}")));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// A type's name without its path.
fn short_type_name<T>() -> &'static str {
    let name = std::any::type_name::<T>();
    name.rsplit("::").next().unwrap_or(name)
}

/// Doc lines as lines that explain; an example without its frame.
fn explanations(docs: &[&str]) -> Vec<String> {
    let text = |line: &&str| match line.strip_prefix("Example: `").and_then(|rest| rest.strip_suffix('`')) {
        Some(example) => format!("## {example}"),
        None => format!("## {line}"),
    };
    docs.iter().filter(|line| !line.is_empty()).map(text).collect()
}

/// The values of an enumeration, from serde's sentence about one that is unknown.
fn values<T: DeserializeOwned>(key: &str) -> Option<String> {
    let error = toml::from_str::<T>(&format!("{key} = \"unknown value\"")).err()?;
    let (_, known) = error.message().strip_prefix("unknown variant ")?.split_once("expected ")?;
    let names: Vec<String> =
        known.split('`').skip(1).step_by(2).map(|value| format!("\"{value}\"")).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// A struct with its doc comments, as rustfmt writes it: one field a line.
#[derive(Default)]
struct DocumentedStruct<'a> {
    docs: Vec<&'a str>,
    fields: Vec<(&'a str, Vec<&'a str>)>,
}

impl<'a> DocumentedStruct<'a> {
    /// Empty if there is no such struct.
    fn find(source: &'a str, name: &str) -> Self {
        let head = format!("struct {name} {{");
        let mut found = Self::default();
        let mut docs = Vec::new();
        let mut inside = false;
        for line in source.lines() {
            let text = line.trim();
            match text.strip_prefix("///") {
                Some(doc) => docs.push(doc.trim()),
                None if text.starts_with("#[") => {}
                None if text.trim_start_matches("pub ") == head => {
                    inside = true;
                    found.docs = std::mem::take(&mut docs);
                }
                None if inside && text == "}" => break,
                None => {
                    let docs = std::mem::take(&mut docs);
                    let field = text.trim_start_matches("pub ").split_once(": ");
                    if let Some((field, _)) = field.filter(|_| inside) {
                        found.fields.push((field, docs));
                    }
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// How the
    /// example is run.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct DocumentedExample {
        /// Of every draw.
        seed: u64,
        /// The file of the model.
        ///
        /// Example: `file = "model.onnx"`
        file: Option<String>,
        /// The pace.
        #[serde(rename = "pace")]
        pace: ExamplePace,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum ExamplePace {
        Slow,
        VeryFast,
    }

    impl Default for DocumentedExample {
        fn default() -> Self {
            Self { seed: 1, file: None, pace: ExamplePace::VeryFast }
        }
    }

    const SOURCE: &str = include_str!("document.rs");

    #[test]
    fn keys_are_shown_with_documentation_values_and_defaults() {
        let text = section::<DocumentedExample>("example", SOURCE);
        let expected = "## How the\n## example is run.\n[example]\n\
                        ## Of every draw.\n# seed = 1\n\
                        ## The file of the model.\n## file = \"model.onnx\"\n\
                        ## The pace.\n## Values: \"slow\", \"very-fast\".\n# pace = \"very-fast\"\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_unknown_struct_has_no_keys() {
        assert_eq!(section::<DocumentedExample>("example", "struct Other;"), "[example]\n");
    }
}
