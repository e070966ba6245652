//! Limits on the bytes that a socket holds, and the signals of its path, as far as the system offers them.
//!
//! Each function is optional: docs/platforms.md tells the effect of its absence. `linux` implements them all. On other systems, `fallback`
//! leaves everything to TCP and knows nothing of the path.
//!
//! - `clamp`: the peer may have at most this many bytes in flight towards us; 0 lifts the limit. Without it small answers wait a little
//!   longer behind bulk. Returns whether the limit lasts. If not, TCP lifts it when it next gives the socket more memory. It lasts only
//!   once the buffer is large enough to be locked.
//! - `low_water`: the socket becomes readable only once this many bytes have arrived, or the end. Without it bulk is read in smaller
//!   chunks.
//! - `send_buffer`: the send buffer holds at most this many bytes, including those sent but not acknowledged. 0 returns it to TCP's own
//!   tuning.
//! - `unsent`: the socket accepts at most this many bytes that TCP may not send yet (`TCP_NOTSENT_LOWAT`). The writer is woken when half of
//!   them are left.
//! - `pace`: the connection sends at most this many bytes a second; `u32::MAX` leaves it to TCP. Without it uploads overflow a path's queue
//!   after each part.
//! - `SocketSignals`: the path's signals, as [`PathSignals`](super::PathSignals).

#[cfg(any(not(target_os = "linux"), laneway_fallback))]
mod fallback;
#[cfg(all(target_os = "linux", not(laneway_fallback)))]
mod linux;

#[cfg(any(not(target_os = "linux"), laneway_fallback))]
pub(super) use fallback::*;
#[cfg(all(target_os = "linux", not(laneway_fallback)))]
pub(super) use linux::*;
