//! Asks a user for the code of an MFA device.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::context::say;

/// Returns whether a user can be asked.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on the terminal.
///
/// # Errors
/// If there is no terminal, or no answer.
pub(crate) fn ask(serial: &str) -> io::Result<String> {
    say(&format!("MFA code of {serial}:"));
    // Don't use standard input's buffer: the command may read objects from it.
    let terminal = std::fs::File::open("/dev/tty")?;
    let mut line = String::new();
    io::BufReader::new(terminal).read_line(&mut line)?;
    let code = line.trim();
    if code.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no code was given"));
    }
    Ok(code.to_owned())
}
