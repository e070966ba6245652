//! The bytes that a socket holds in each direction, and when it is readable, as far as the system lets a program say.
//!
//! All of these are wishes; docs/platforms.md says what goes otherwise without them. `linux` carries them out; elsewhere `fallback` leaves
//! everything to TCP, and knows nothing of the path.
//!
//! - `clamp`: the peer may have at most so many bytes on their way to us, 0 lifting that. Without it small answers wait a little
//!   longer behind bulk. Returns whether it lasts; else TCP lifts it when it gives the socket more memory, which it is kept from
//!   only once it has given enough.
//! - `low_water`: the socket is readable only once so many bytes have come, or its end. Without it bulk is read in smaller
//!   chunks.
//! - `send_buffer`: the send buffer holds at most so many bytes, sent and not acknowledged ones included; 0 gives it back to
//!   TCP's own tuning.
//! - `unsent`: the kernel takes at most so many bytes beyond what it may send at once; it wakes the writer at half of that.
//! - `pace`: the connection sends at most so many bytes a second; `u32::MAX` leaves it to TCP. Without it uploads overflow a path's queue after each
//!   part.
//! - `SocketSignals`: the path's signals, by [`PathSignals`](super::PathSignals).

#[cfg(any(not(target_os = "linux"), laneway_fallback))]
mod fallback;
#[cfg(all(target_os = "linux", not(laneway_fallback)))]
mod linux;

#[cfg(any(not(target_os = "linux"), laneway_fallback))]
pub(super) use fallback::*;
#[cfg(all(target_os = "linux", not(laneway_fallback)))]
pub(super) use linux::*;
