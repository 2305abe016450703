//! Sections of the configuration file that document themselves.
//!
//! [`section!`] declares a section: each key with its type, default and explanation. From this one place come the type, its
//! default, and the text that `evenhand-node print-config` prints.

use std::fmt::Write as _;

use serde::Serialize;

use super::{NodeConfig, NodeConfigError};

/// A section of the configuration file.
pub(crate) trait Section: Sized {
    /// The default section as `print-config` shows it under `name`.
    fn document(name: &str) -> String;

    /// The section as a commented block, for one that is absent by default.
    fn document_optional(name: &str) -> String;

    /// Keys without a default.
    fn required() -> Vec<&'static str> {
        Vec::new()
    }

    /// The first value that cannot be used, with the remedy; `name` is that of the section in the file `whole`.
    fn check(&self, name: &str, whole: &NodeConfig) -> Result<(), NodeConfigError>;
}

/// A section declared by [`section!`].
pub(crate) trait Keys: Default + Serialize {
    /// Explanation of the section.
    const ABOUT: &'static [&'static str];
    /// Its keys, in the order of the file.
    const KEYS: &'static [ConfigKey];
}

/// A key of a section.
pub(crate) struct ConfigKey {
    pub(crate) name: &'static str,
    pub(crate) explanation: &'static [&'static str],
    pub(crate) shown: Shown,
}

/// The value of a key that the printed file shows.
pub(crate) enum Shown {
    /// Its default, commented out.
    Default,
    /// Its default, in effect: the key is required.
    Required,
    /// An example, commented out.
    Example(&'static str),
    /// A section of its own, with an example of its content.
    Section(&'static str),
}

/// The check of a section declared by [`section!`].
pub(crate) trait SectionCheck {
    /// The first value that cannot be used, with the remedy; `name` is that of the section in the file `whole`.
    fn check(&self, name: &str, whole: &NodeConfig) -> Result<(), NodeConfigError>;
}

impl<K: Keys + SectionCheck> Section for K {
    fn document(name: &str) -> String {
        let mut text = format!("[{name}]\n");
        document_keys::<K>(&mut text);
        text
    }

    fn document_optional(name: &str) -> String {
        let about: String = K::ABOUT.iter().map(|line| format!("##{line}\n")).collect();
        about + &document_optional::<K>(name, "")
    }

    fn required() -> Vec<&'static str> {
        K::KEYS.iter().filter(|key| matches!(key.shown, Shown::Required)).map(|key| key.name).collect()
    }

    fn check(&self, name: &str, whole: &NodeConfig) -> Result<(), NodeConfigError> {
        SectionCheck::check(self, name, whole)
    }
}

impl<T: Section> Section for Option<T> {
    fn document(name: &str) -> String {
        T::document_optional(name)
    }

    fn document_optional(name: &str) -> String {
        T::document_optional(name)
    }

    fn check(&self, name: &str, whole: &NodeConfig) -> Result<(), NodeConfigError> {
        self.as_ref().map_or(Ok(()), |section| section.check(name, whole))
    }
}

/// The default values of a section in TOML, by key.
fn defaults<K: Keys>() -> toml::Table {
    toml::Table::try_from(K::default()).expect("a section holds nothing that TOML cannot write")
}

/// `## explanation` and `# key = default` for each key.
pub(crate) fn document_keys<K: Keys>(text: &mut String) {
    let defaults = defaults::<K>();
    for key in K::KEYS {
        for line in key.explanation {
            let _infallible = writeln!(text, "##{line}");
        }
        let (mark, value) = match key.shown {
            Shown::Required => ("", value(&defaults, key.name)),
            Shown::Default => ("# ", value(&defaults, key.name)),
            Shown::Example(example) | Shown::Section(example) => ("# ", example.to_owned()),
        };
        let _infallible = writeln!(text, "{mark}{} = {value}", key.name);
    }
}

/// The column of the explanations in a commented block.
const EXPLANATION_COLUMN: usize = 30;

/// `## key = value   # explanation` for each key; `more` are further lines before them.
pub(crate) fn document_optional<K: Keys>(name: &str, more: &str) -> String {
    let defaults = defaults::<K>();
    let mut text = format!("## [{name}]\n{more}");
    let mut line = |code: &str, explanation: &[&str]| {
        let _infallible = match explanation.concat() {
            none if none.is_empty() => writeln!(text, "## {code}"),
            explanation => writeln!(text, "## {code:EXPLANATION_COLUMN$} #{explanation}"),
        };
    };
    let (sections, keys): (Vec<_>, Vec<_>) =
        K::KEYS.iter().partition(|key| matches!(key.shown, Shown::Section(_)));
    for key in keys {
        let value = match key.shown {
            Shown::Example(example) => example.to_owned(),
            _ => value(&defaults, key.name),
        };
        line(&format!("{} = {value}", key.name), key.explanation);
    }
    for key in sections {
        line(&format!("[{name}.{}]", key.name), key.explanation);
        if let Shown::Section(content) = key.shown {
            line(content, &[]);
        }
    }
    text
}

fn value(defaults: &toml::Table, key: &str) -> String {
    defaults.get(key).map(ToString::to_string).unwrap_or_default()
}

/// Declares a section of the configuration file: keys with type, default and explanation.
///
/// After the default may stand what the printed file shows instead: `=> required` where the key has no default, `=> "…"`
/// for an example in TOML, `=> ["…"]` for a section of its own and its content.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        pub struct $section:ident {
            $(
                $(#[doc = $explanation:literal])+
                pub $key:ident: $type:ty = $default:expr $(=> $shown:tt)?,
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $section {
            $(
                $(#[doc = $explanation])+
                pub $key: $type,
            )+
        }

        impl Default for $section {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }

        impl $crate::config::section::Keys for $section {
            const ABOUT: &'static [&'static str] = &[$($about),+];
            const KEYS: &'static [$crate::config::section::ConfigKey] = &[$(
                $crate::config::section::ConfigKey {
                    name: stringify!($key),
                    explanation: &[$($explanation),+],
                    shown: $crate::config::section::section!(@shown $($shown)?),
                },
            )+];
        }
    };
    (@shown) => { $crate::config::section::Shown::Default };
    (@shown required) => { $crate::config::section::Shown::Required };
    (@shown [$content:literal]) => { $crate::config::section::Shown::Section($content) };
    (@shown $example:literal) => { $crate::config::section::Shown::Example($example) };
}
pub(crate) use section;
