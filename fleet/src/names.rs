//! Names of choices, as they are written on the command line and in file names.

use clap::ValueEnum;

/// The name of a choice on the command line.
pub(crate) fn value_name(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
}
