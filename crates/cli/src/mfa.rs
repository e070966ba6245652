//! Asks for the code of an MFA device, where somebody is there to be asked.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::sync::Arc;

use laneway_store::MfaPrompt;

use crate::context::say;

/// Asks on the terminal; `None` without one.
pub(crate) fn prompt() -> Option<MfaPrompt> {
    let is_watched = io::stdin().is_terminal() && io::stderr().is_terminal();
    is_watched.then(|| Arc::new(|serial: &str| ask(serial)) as MfaPrompt)
}

fn ask(serial: &str) -> io::Result<String> {
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
