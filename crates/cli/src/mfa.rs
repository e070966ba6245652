//! Asks for the code of an MFA device, where somebody is there to be asked.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::context::say;

/// Whether somebody is there.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on the terminal.
///
/// # Errors
/// Without a terminal, or an answer.
pub(crate) fn ask(serial: &str) -> io::Result<String> {
    say(&format!("MFA code of {serial}:"));
    // Not standard input's buffer, which a command may want to read objects from.
    let terminal = std::fs::File::open("/dev/tty")?;
    let mut line = String::new();
    io::BufReader::new(terminal).read_line(&mut line)?;
    let code = line.trim();
    if code.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no code was given"));
    }
    Ok(code.to_owned())
}
