//! The core of the bindings: all that the faces of the library in other languages have in common.
//!
//! It wraps the library and decides nothing. A face adds the types and the memory of its language, and waits for calls as its programs do.
//!
//! - Names: `options` and `settings` are the tables of what jobs and clients take, `value` reads their values, `attributes` are those of
//!   objects, and `verbs` numbers the verbs.
//! - Hosts that hold numbers and exchange bytes (the JVM, C): `handles`, `packed`, `call`, `events`, `lent`, `provider`. Nothing in here calls
//!   into such a host. A call's end, a record, a wish for credentials is an event, which a thread of the host takes. So no
//!   thread of the engine's ever waits for a host that collects garbage.
//! - Hosts with objects of their own (Python): `queue` wakes a reader once for all calls that are done by then. `fork` has the rules
//!   for a host that forks.
//! - Both: `failure`, `described` and `log`.

pub mod attributes;
pub mod call;
pub mod described;
pub mod events;
pub mod failure;
pub mod fork;
pub mod handles;
pub mod lent;
pub mod listeners;
pub mod log;
pub mod opened;
pub mod options;
pub mod packed;
pub mod provider;
pub mod queue;
pub mod settings;
mod threads;
pub mod value;
pub mod verbs;
