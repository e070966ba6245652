//! The exit status of the program.

/// Each status with its meaning, for help and the manual.
pub(crate) const STATUSES: &[(&str, &str)] = &[
    ("0", "all done"),
    ("1", "something failed; everything else is done"),
    ("2", "bad usage"),
    ("130", "interrupted"),
];

/// Returns the statuses in one sentence.
pub(crate) fn sentence() -> String {
    let lines: Vec<_> = STATUSES.iter().map(|(status, meaning)| format!("{status} {meaning}")).collect();
    format!("Exit status: {}.", lines.join("; "))
}

/// The exit statuses that scripts may rely on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// Everything that was requested is done.
    Done,
    /// Something failed; the rest is done.
    Failed,
    /// The command line is invalid.
    Usage,
    /// Ctrl-C. The same command continues the work.
    Interrupted,
}

impl Exit {
    /// Returns the status as a number.
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Interrupted => 130,
        }
    }
}

/// The outcome of a command with several URLs. If one fails, the command goes on with the others.
#[derive(Default, Debug)]
pub(crate) struct OutcomeTally {
    done: bool,
    failed: bool,
    usage: bool,
}

impl OutcomeTally {
    pub(crate) fn done(&mut self) {
        self.done = true;
    }

    /// Counts a failure. `usage` is true if the command line is the cause.
    pub(crate) fn failed(&mut self, usage: bool) {
        self.failed = true;
        self.usage |= usage;
    }

    /// Returns the exit status. The status is bad usage if nothing was done and the command line is the
    /// cause.
    pub(crate) fn exit(&self) -> Exit {
        match (self.failed, self.usage && !self.done) {
            (_, true) => Exit::Usage,
            (true, false) => Exit::Failed,
            (false, false) => Exit::Done,
        }
    }
}

/// An error in the command line. The error ends the program with [`Exit::Usage`].
#[derive(Debug)]
pub(crate) struct BadUsage {
    message: String,
    about: Option<String>,
}

impl BadUsage {
    /// Returns the error with this message, in one line.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), about: None }
    }

    /// Returns an error about a URL or path. The message begins with this URL or path.
    pub(crate) fn of(about: impl Into<String>, message: impl std::fmt::Display) -> Self {
        let about = about.into();
        Self { message: format!("{about}: {message}"), about: Some(about) }
    }

    /// Records the URL or path that the error is about, if the command names only one.
    pub(crate) fn on(mut self, places: &[impl ToString]) -> Self {
        if let [place] = places {
            self.about = Some(place.to_string());
        }
        self
    }

    /// Returns the URL or path that the error is about, if the command names only one.
    pub(crate) fn about(&self) -> Option<&str> {
        self.about.as_deref()
    }
}

impl std::fmt::Display for BadUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BadUsage {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_meant_is_bad_usage_unless_something_was_done() {
        let mut tally = OutcomeTally::default();
        assert_eq!(tally.exit(), Exit::Done);
        tally.failed(true);
        assert_eq!(tally.exit(), Exit::Usage);
        tally.done();
        assert_eq!(tally.exit(), Exit::Failed);
    }
}
