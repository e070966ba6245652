//! `laneway completions`: a script that teaches a shell the verbs and options.

use clap::Args;
use clap_complete::Shell;

use crate::arguments;
use crate::context::Context;
use crate::exit::Exit;

/// Print a completion script for a shell
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// Shell that reads the script
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut arguments::command(), "laneway", &mut script);
        context.output.bytes(&script)?;
        Ok(Exit::Done)
    }
}
