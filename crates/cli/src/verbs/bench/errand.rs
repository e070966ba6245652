//! One run of one rung, in a process of its own.

use std::io;

use clap::Args;

use crate::exit::Exit;

/// Run one step of a benchmark that standard input describes
#[derive(Args, Debug)]
#[command(hide = true)]
pub(super) struct Arguments {}

impl Arguments {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        laneway_experiments::carry_out(io::stdin().lock(), io::stdout().lock())?;
        Ok(Exit::Done)
    }
}
