//! `evenhand-node`: see `evenhand-node help`.

fn main() -> std::process::ExitCode {
    evenhand_node::command::main()
}
