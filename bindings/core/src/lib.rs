//! The core of the bindings: everything that the interfaces in other languages share.
//!
//! It wraps the library, and makes no decisions of its own about requests. A binding adds the types and memory of its
//! language, and the way in which that language waits for calls.
//!
//! - Tables of names: `options` has the options of jobs, and `settings` those of clients. `value` converts their
//!   values. `described` has the attributes of objects, and `verbs` the verbs with their numbers.
//! - For hosts that hold numbers and exchange bytes (the JVM, C): `handles`, `packed`, `call`, `events`, `lent`,
//!   `provider`. The library never calls functions of such a host. Instead, ends of calls, log records and requests for
//!   credentials are events, which a thread of the host fetches. So no thread of the engine waits for a host's garbage
//!   collection.
//! - For hosts with native objects (Python): `events::Queue` passes results to a reader, and wakes it once for all
//!   calls that are done by then. `fork` has the rules for hosts that fork.
//! - For both: `failure`, `described`, `log` and `plan`.

mod azure;
pub mod call;
pub mod described;
pub mod events;
pub mod failure;
pub mod fork;
pub mod handles;
pub mod lent;
pub mod log;
pub mod options;
pub mod packed;
pub mod plan;
pub mod provider;
pub mod settings;
mod threads;
pub mod value;
pub mod verbs;
