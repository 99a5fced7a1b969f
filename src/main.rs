//! The `labelflow` command.

fn main() -> std::process::ExitCode {
    labelflow::cli::main()
}
