//! The tidegate command; everything is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidegate_cli::run()
}
