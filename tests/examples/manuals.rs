//! Manual pages and shell completions of the programs, for their packages.
//!
//! `manuals FOLDER` writes `NAME.1`, `NAME.bash`, `_NAME` and `NAME.fish` for the node and the coordinator. What they say comes
//! from the programs' own help.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

#[allow(dead_code)]
#[path = "../../coordinator/src/bin/evenhand-coordinator/main.rs"]
mod coordinator;

fn main() -> io::Result<()> {
    let folder =
        std::env::args_os().nth(1).map(PathBuf::from).ok_or_else(|| io::Error::other("which folder?"))?;
    fs::create_dir_all(&folder)?;
    write(coordinator::CoordinatorArguments::command(), &folder)?;
    write(node(evenhand_node::command::HELP), &folder)
}

fn write(command: Command, folder: &Path) -> io::Result<()> {
    let name = command.get_name().to_owned();
    let mut page = Vec::new();
    let man = Man::new(command.clone()).manual("Evenhand");
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    // Each command with its arguments: pages of their own would say little.
    page.extend(commands(&command));
    fs::write(folder.join(format!("{name}.1")), page)?;
    for (shell, file) in [
        (Shell::Bash, format!("{name}.bash")),
        (Shell::Zsh, format!("_{name}")),
        (Shell::Fish, format!("{name}.fish")),
    ] {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command.clone(), &name, &mut text);
        fs::write(folder.join(file), text)?;
    }
    Ok(())
}

/// The section about commands, in roff.
fn commands(program: &Command) -> Vec<u8> {
    let roff = |text: &str| text.replace('\\', "\\e").replace('-', "\\-").replace("\n.", "\n\\&.");
    let mut text = String::from(".SH COMMANDS\n");
    for command in program.get_subcommands() {
        let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set()).map(argument);
        let synopsis =
            std::iter::once(command.get_name().to_owned()).chain(arguments).collect::<Vec<_>>().join(" ");
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        text += &format!(".TP\n\\fB{}\\fR\n{}\n", roff(&synopsis), roff(&about));
    }
    text.into_bytes()
}

/// An argument as a synopsis shows it.
fn argument(argument: &Arg) -> String {
    let value = argument.get_id().as_str().to_uppercase();
    let text = match argument.get_long() {
        None => value,
        Some(long) if argument.get_action().takes_values() => format!("--{long} {value}"),
        Some(long) => format!("--{long}"),
    };
    if argument.is_required_set() { text } else { format!("[{text}]") }
}

/// The node's command line, which it reads itself, from its help.
fn node(help: &'static str) -> Command {
    let section = |title: &str| {
        let lines = help.lines().skip_while(move |line| *line != title).skip(1);
        lines
            .take_while(|line| line.starts_with("  "))
            .filter_map(|line| line.trim().split_once("  "))
            .collect::<Vec<_>>()
    };
    let mut command =
        Command::new("evenhand-node").version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    command = command.about(help.lines().next().unwrap_or_default());
    if let Some(codes) = help.lines().find(|line| line.starts_with("Exit codes")) {
        command = command.long_about(format!("{}\n\n{codes}", help.lines().next().unwrap_or_default()));
    }
    for (names, about) in section("Options:") {
        let mut words = names.split([',', ' ']).filter(|word| !word.is_empty());
        let long = words.clone().find_map(|word| word.strip_prefix("--")).unwrap_or_default();
        let short = words.clone().find_map(|word| word.strip_prefix('-').filter(|rest| rest.len() == 1));
        let value = words.find(|word| !word.starts_with('-'));
        let action = if value.is_some() { ArgAction::Set } else { ArgAction::SetTrue };
        let mut option = Arg::new(long).long(long).help(about.trim()).action(action).global(true);
        option =
            short.and_then(|short| short.chars().next()).map_or(option.clone(), |short| option.short(short));
        command = command.arg(value.map_or(option.clone(), |value| option.value_name(value)));
    }
    command.subcommands(
        section("Commands:").into_iter().map(|(name, about)| Command::new(name).about(about.trim())),
    )
}
