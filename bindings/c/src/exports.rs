//! The functions of `tests/laneway.h`. Texts end with a zero byte. Bytes that aren't UTF-8 are replaced by U+FFFD, so
//! such a text doesn't name an existing object or option.

#![expect(unsafe_code, reason = "C finds functions by name, and passes memory by address")]

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use laneway_bindings_core::call::{self, PendingAnswer};
use laneway_bindings_core::failure::Failure;
use laneway_bindings_core::handles::{self, HandleTarget};
use laneway_bindings_core::lent::{LentMemory, Memory};
use laneway_bindings_core::packed::{Packed, Unpacked};
use laneway_bindings_core::{log, settings, value, verbs};

/// Packed bytes that cross the interface: arguments that the C program builds, and answers that it must free.
pub(crate) struct Buffer(Packed);

/// Opens a listener, which receives the ends of calls, and returns its number.
// SAFETY: no other symbol of the process has this name.
#[unsafe(no_mangle)]
extern "C" fn laneway_listener() -> u64 {
    log::open_listener()
}

/// Makes an empty buffer.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn laneway_buffer() -> *mut Buffer {
    Box::into_raw(Box::new(Buffer(Packed::default())))
}

/// # Safety
/// The buffer comes from [`laneway_buffer`] or [`laneway_call`], and the caller doesn't use it afterwards.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn laneway_free(buffer: *mut Buffer) {
    if !buffer.is_null() {
        // SAFETY: the caller guarantees that the buffer came from this library, which made it from a box.
        drop(unsafe { Box::from_raw(buffer) });
    }
}

/// # Safety
/// The buffer comes from [`laneway_buffer`].
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn laneway_number(buffer: *mut Buffer, number: u64) {
    // SAFETY: the caller guarantees what `# Safety` requires.
    unsafe { &mut *buffer }.0.number(number);
}

/// # Safety
/// The buffer comes from [`laneway_buffer`].
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn laneway_flag(buffer: *mut Buffer, flag: c_int) {
    // SAFETY: the caller guarantees what `# Safety` requires.
    unsafe { &mut *buffer }.0.flag(flag != 0);
}

/// # Safety
/// The buffer comes from [`laneway_buffer`], and the text ends with a zero byte.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn laneway_text(buffer: *mut Buffer, text: *const c_char) {
    // SAFETY: the caller guarantees what `# Safety` requires, for both pointers.
    unsafe { (*buffer).0.text(&CStr::from_ptr(text).to_string_lossy()) };
}

/// Returns the bytes of a buffer, and stores their number in `length`.
///
/// # Safety
/// The buffer comes from [`laneway_buffer`] or [`laneway_call`].
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn laneway_bytes(buffer: *const Buffer, length: *mut usize) -> *const u8 {
    // SAFETY: the caller guarantees what `# Safety` requires.
    let bytes = unsafe { &*buffer }.0.bytes();
    // SAFETY: the caller passes a valid pointer for the length.
    unsafe { *length = bytes.len() };
    bytes.as_ptr()
}

/// Opens the bucket of a URL with a new client. The buffer holds the number of settings, and then each setting's name
/// and value as texts. Returns 0 if the settings or the URL are invalid.
///
/// # Safety
/// The buffer comes from [`laneway_buffer`], and the URL ends with a zero byte.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn laneway_open(pairs: *const Buffer, url: *const c_char) -> u64 {
    // SAFETY: the caller guarantees what `# Safety` requires, for both pointers.
    let (pairs, url) = unsafe { (&(*pairs).0, CStr::from_ptr(url).to_string_lossy()) };
    let open = || -> Result<u64, Failure> {
        let settings = value::of_texts(Unpacked::new(pairs.bytes()).pairs()?, settings::kind_of)?;
        Ok(handles::keep(HandleTarget::Bucket(settings::client(settings, None)?.bucket(&url)?)))
    };
    open().unwrap_or(0)
}

/// Begins a job with a bucket's client. Returns the job's number, or 0 if the request is invalid.
///
/// # Safety
/// The buffer comes from [`laneway_buffer`].
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn laneway_job(bucket: u64, request: *const Buffer) -> u64 {
    // SAFETY: the caller guarantees what `# Safety` requires.
    let request = unsafe { &*request }.0.bytes();
    let begin = || verbs::job(handles::bucket(bucket)?.client(), &mut Unpacked::new(request));
    begin().unwrap_or(0)
}

/// Calls the operation with the number `verb` on the handle `of`, and waits for its end. The call sends the bytes of
/// the given memory, or writes to the memory. Returns an event of 24 bytes (length, kind and call), then a flag, then
/// the answer or a failure. Use each listener for only one call at a time.
///
/// # Safety
/// The buffer comes from [`laneway_buffer`], and the memory has `length` bytes.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn laneway_call(
    listener: u64,
    verb: c_int,
    of: u64,
    arguments: *const Buffer,
    memory: *mut u8,
    length: usize,
) -> *mut Buffer {
    let Some(events) = log::listener(listener) else { return ptr::null_mut() };
    // SAFETY: the caller guarantees what `# Safety` requires.
    let arguments = unsafe { &*arguments }.0.bytes();
    let ending = PendingAnswer::new(&events, of);
    let memory = match memory.is_null() {
        true => Memory::None,
        // SAFETY: the caller guarantees what `# Safety` requires. This function returns only after it has received the
        // event that reports the end of the call, and the caller's memory stays valid until this function returns. So
        // the memory outlives the call.
        false => Memory::Lent(unsafe { LentMemory::new(memory, length, &ending) }),
    };
    let work = verbs::work(verb, of, arguments, memory, &ending);
    call::begin(ending, work);
    let mut taken = events.take();
    while taken.is_empty() {
        taken = events.take();
    }
    Box::into_raw(Box::new(Buffer(taken)))
}
