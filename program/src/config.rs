//! The convention of configuration files, which are TOML.
//!
//! Unknown keys are errors that name the key, its section and the nearest known key. The commented default file is printed by
//! `print-config` and parsed in tests: lines with `##` explain, lines with `#` show a default. [`document`] assembles it from the
//! types of the sections.

pub mod document;

use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};

use crate::suggest::nearest;

/// The reason why a text is no configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default())]
pub struct TomlError {
    /// The parser's message, with line and column.
    pub message: String,
    /// The place of an unknown key or value, and the known one it resembles.
    pub hint: Option<String>,
}

/// The configuration that `text` describes. Types deny unknown fields by `#[serde(deny_unknown_fields)]`.
///
/// ```
/// #[derive(Debug, serde::Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct Config { broker: Broker }
/// #[derive(Debug, serde::Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct Broker { url: String }
///
/// let error = evenhand_program::config::parse::<Config>("[broker]\nulr = 'mqtt://host'").unwrap_err();
/// assert!(error.to_string().ends_with("unknown key `ulr` in [broker]; did you mean `url`?"));
/// ```
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, TomlError> {
    let parser = toml::Deserializer::parse(text)
        .map_err(|error| TomlError { message: message(&error), hint: repetition(text, &error) })?;
    serde_path_to_error::deserialize(parser).map_err(|error| TomlError {
        message: message(error.inner()),
        hint: hint(error.path(), error.inner()),
    })
}

/// A default file with every line that shows a default, or an example, in effect.
pub fn uncommented(default: &str) -> String {
    let setting = |line: &str| {
        let rest = line.strip_prefix('#')?.trim_start_matches(' ');
        rest.starts_with(|first: char| first.is_ascii_lowercase()).then(|| rest.to_owned())
    };
    default.lines().map(|line| setting(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

fn message(error: &toml::de::Error) -> String {
    error.to_string().trim_end().to_owned()
}

/// What to do about a section or key that is there twice.
fn repetition(text: &str, error: &toml::de::Error) -> Option<String> {
    if error.message() != "duplicate key" {
        return None;
    }
    let name = text.get(error.span()?)?.trim();
    let line = text[..error.span()?.start].rsplit('\n').next().unwrap_or_default();
    Some(match line.trim_start().starts_with('[') {
        true => format!(
            "the file has the section [{name}] twice; keep one, or put a # before every line of the other"
        ),
        false => format!("`{name}` is there twice; keep one"),
    })
}

/// From serde's sentence: unknown field `a`, expected one of `b`, `c`.
fn hint(path: &Path, error: &toml::de::Error) -> Option<String> {
    let what = match error.message() {
        message if message.starts_with("unknown field ") => "key",
        message if message.starts_with("unknown variant ") => "value",
        _ => return None,
    };
    let mut names = error.message().split('`').skip(1).step_by(2);
    let unknown = names.next()?;
    let suggestion = nearest(unknown, names).map(|name| format!("; did you mean `{name}`?"));
    let section = section(path, what == "key", unknown);
    Some(format!("unknown {what} `{unknown}`{section}{}", suggestion.unwrap_or_default()))
}

/// ` in [section]` for a key, ` of section.key` for a value; nothing at the top.
fn section(path: &Path, is_key: bool, unknown: &str) -> String {
    let mut names: Vec<&str> = path
        .iter()
        .filter_map(|segment| match segment {
            Segment::Map { key } => Some(key.as_str()),
            Segment::Enum { variant } => Some(variant.as_str()),
            Segment::Seq { .. } | Segment::Unknown => None,
        })
        .collect();
    if names.last() == Some(&unknown) {
        names.pop();
    }
    match names.join(".") {
        name if name.is_empty() => name,
        name if is_key => format!(" in [{name}]"),
        name => format!(" of {name}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Example {
        broker: ExampleSection,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    struct ExampleSection {
        url: String,
        #[serde(default)]
        access: Option<ExampleAccess>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum ExampleAccess {
        Open,
        PerNode,
    }

    fn error(text: &str) -> String {
        parse::<Example>(text).unwrap_err().to_string()
    }

    #[test]
    fn unknown_keys_are_named_with_section_and_nearest_known_key() {
        let text = error("[broker]\nulr = \"x\"\n");
        assert!(text.starts_with("TOML parse error at line 2, column 1\n"), "{text}");
        assert!(text.contains("unknown field `ulr`"), "{text}");
        assert!(text.ends_with("\nunknown key `ulr` in [broker]; did you mean `url`?"), "{text}");
        let text = error("[brocker]\nurl = \"x\"\n");
        assert!(text.ends_with("\nunknown key `brocker`; did you mean `broker`?"), "{text}");
        let text = error("[zzzzzzzzz]\n");
        assert!(text.ends_with("\nunknown key `zzzzzzzzz`"), "{text}");
    }

    #[test]
    fn unknown_values_are_named_with_their_key() {
        let text = error("[broker]\nurl = \"x\"\naccess = \"opne\"\n");
        assert!(text.ends_with("\nunknown value `opne` of broker.access; did you mean `open`?"), "{text}");
    }

    #[test]
    fn what_is_there_twice_is_named_with_the_remedy() {
        let section = error("[broker]\nurl = \"x\"\n\n[broker]\nurl = \"y\"\n");
        assert!(section.ends_with("\nthe file has the section [broker] twice; keep one, or put a # before every line of the other"), "{section}");
        let key = error("[broker]\nurl = \"x\"\nurl = \"y\"\n");
        assert!(key.ends_with("\n`url` is there twice; keep one"), "{key}");
    }

    #[test]
    fn other_errors_have_the_parsers_words() {
        for text in ["[broker", "[broker]\nurl = 7\n", "[broker]\n"] {
            let error = parse::<Example>(text).unwrap_err();
            assert!(error.message.starts_with("TOML parse error at line "), "{error}");
            assert_eq!(error.hint, None);
        }
    }

    #[test]
    fn lines_that_show_a_default_are_uncommented() {
        let default =
            "## Explanation.\n[broker]\n# url = \"x\"\n#access = \"open\"\n## access = \"per-node\"\n";
        let text = uncommented(default);
        assert_eq!(
            text,
            "## Explanation.\n[broker]\nurl = \"x\"\naccess = \"open\"\n## access = \"per-node\"\n"
        );
        let expected = ExampleSection { url: "x".into(), access: Some(ExampleAccess::Open) };
        assert_eq!(parse::<Example>(&text).unwrap().broker, expected);
    }
}
