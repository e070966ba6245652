//! How the program ends.

/// Each status and what it says, as help and the manual have it.
pub(crate) const STATUSES: &[(&str, &str)] = &[
    ("0", "all done"),
    ("1", "something failed, the rest is done"),
    ("2", "bad usage"),
    ("130", "interrupted"),
];

/// The statuses in one sentence.
pub(crate) fn sentence() -> String {
    let lines: Vec<_> = STATUSES.iter().map(|(status, meaning)| format!("{status} {meaning}")).collect();
    format!("Exit status: {}.", lines.join("; "))
}

/// The exit statuses that scripts may rely on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// Everything that was asked for is done.
    Done,
    /// Something failed; the rest is done.
    Failed,
    /// The command line asks for something that can't be meant.
    Usage,
    /// Ctrl-C. What was begun can be gone on with.
    Interrupted,
}

impl Exit {
    /// The status as a number.
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Interrupted => 130,
        }
    }
}

/// How a command over several places goes: some of them may fail, and the rest is done.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    done: bool,
    failed: bool,
    usage: bool,
}

impl Tally {
    pub(crate) fn done(&mut self) {
        self.done = true;
    }

    /// Counts a failure; `usage` says that what was typed makes no sense.
    pub(crate) fn failed(&mut self, usage: bool) {
        self.failed = true;
        self.usage |= usage;
    }

    /// How it ended. Where nothing was done because of what was typed, that is bad usage.
    pub(crate) fn exit(&self) -> Exit {
        match (self.failed, self.usage && !self.done) {
            (_, true) => Exit::Usage,
            (true, false) => Exit::Failed,
            (false, false) => Exit::Done,
        }
    }
}

/// An error that is the command line's: it ends the program with [`Exit::Usage`].
#[derive(Debug)]
pub(crate) struct BadUsage {
    message: String,
    about: Option<String>,
}

impl BadUsage {
    /// What is wrong, in one line.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), about: None }
    }

    /// The same of an URL or a path.
    pub(crate) fn of(about: impl Into<String>, message: impl std::fmt::Display) -> Self {
        let about = about.into();
        Self { message: format!("{about}: {message}"), about: Some(about) }
    }

    /// The same, about `places` where there is only one of them.
    pub(crate) fn on(mut self, places: &[impl ToString]) -> Self {
        if let [place] = places {
            self.about = Some(place.to_string());
        }
        self
    }

    /// The one URL or path that is wrong, if it is one.
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
        let mut tally = Tally::default();
        assert_eq!(tally.exit(), Exit::Done);
        tally.failed(true);
        assert_eq!(tally.exit(), Exit::Usage);
        tally.done();
        assert_eq!(tally.exit(), Exit::Failed);
    }
}
