//! Limits on the bytes that a socket buffers, and measurements of its path, as far as the operating system offers them.
//!
//! Each function is optional. docs/platforms.md explains the effect of a missing function. `linux` implements all of them. On other
//! systems, `fallback` sets no limits and has no measurements.
//!
//! - `clamp` limits the receive window, and so the bytes that the peer may have in flight. 0 removes the limit. Without `clamp`, small
//!   answers wait a little longer behind bulk. `clamp` returns whether the limit is permanent. The limit is permanent only if the receive
//!   buffer is already large enough to be locked at its size. Otherwise TCP removes the limit when it next enlarges the buffer.
//! - `low_water` makes the socket readable only when this many bytes or the end of the stream have arrived. Without `low_water`, bulk is
//!   read in smaller chunks.
//! - `send_buffer` limits the bytes in the send buffer, including those that are sent but not acknowledged. 0 lets TCP choose the size of
//!   the buffer again.
//! - `unsent` limits the bytes that the socket accepts but that TCP can't send yet (`TCP_NOTSENT_LOWAT`). The writer is woken when half of
//!   these bytes are left.
//! - `pace` limits the rate at which the connection sends, in bytes per second. `u32::MAX` means no limit. Without `pace`, uploads overflow
//!   the path's queue at the start of each part.
//! - `SocketSignals` implements [`PathSignals`](super::PathSignals), the measurements of the path.

#[cfg(any(not(target_os = "linux"), laneway_fallback))]
mod fallback;
#[cfg(all(target_os = "linux", not(laneway_fallback)))]
mod linux;

#[cfg(any(not(target_os = "linux"), laneway_fallback))]
pub(super) use fallback::*;
#[cfg(all(target_os = "linux", not(laneway_fallback)))]
pub(super) use linux::*;
