//! `laneway demo`: the main job, shown on a store of the program's own.

mod content;
mod room;
mod stage;
mod steps;

use std::io;

use clap::Args;

use crate::context::{Context, complain};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use stage::{Stop, Stopped};

/// Show what Laneway does, without an account or a network
///
/// Starts a store in this process, with TLS, HTTP/2 and a round trip of 50 ms, and moves files to it and back: fifty of
/// them first one by one, as a simple script would, then as Laneway does; then a thousand; then one large object. All of
/// it is compared byte for byte, and everything is removed at the end.
#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Size of the large object
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = laneway_server::parse_size)]
    size: u64,
}

impl Demo {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let stop = Stop::default();
        let pressed = stop.clone();
        let _interrupt = Interrupt::listen(move || pressed.press())?;
        match steps::play(context, self.size, &stop) {
            Err(error) if stop.pressed() && was_stopped(&error) => {
                complain("interrupted; everything the demo made has been removed");
                Ok(Exit::Interrupted)
            }
            ended => ended.map(|()| Exit::Done),
        }
    }
}

fn was_stopped(error: &anyhow::Error) -> bool {
    let interrupted = |e: &io::Error| e.kind() == io::ErrorKind::Interrupted;
    error.is::<Stopped>() || error.downcast_ref::<io::Error>().is_some_and(interrupted)
}
