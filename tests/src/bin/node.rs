//! `evenhand-node`, built where tests of several crates find it.

fn main() -> std::process::ExitCode {
    evenhand_node::command::main()
}
