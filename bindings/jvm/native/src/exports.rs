//! The native methods of `dev.laneway.Native`. The Javadoc of that class describes each of them. If one
//! panics, `with_env` doesn't let the panic unwind into the JVM, but throws a `RuntimeException` there.

#![expect(unsafe_code, reason = "a JVM finds native methods by symbol, and passes memory by address")]

use std::slice;
use std::sync::Arc;

use jni::errors::ThrowRuntimeExAndDefault;
use jni::objects::{JByteArray, JByteBuffer, JClass, JIntArray, JObjectArray};
use jni::sys::{jbyte, jint, jlong};
use jni::{Env, EnvUnowned};

use laneway_bindings_core::call::{self, PendingAnswer};
use laneway_bindings_core::events::Events;
use laneway_bindings_core::failure::{Failure, answer};
use laneway_bindings_core::handles::{self, HandleTarget};
use laneway_bindings_core::lent::{LentMemory, Memory};
use laneway_bindings_core::packed::{Packed, Unpacked};
use laneway_bindings_core::provider::{self, HostProvider};
use laneway_bindings_core::settings::BuiltClient;
use laneway_bindings_core::{described, log, settings, value, verbs};

/// A failure of the native method itself. Java receives it as a `RuntimeException`.
#[derive(Debug, thiserror::Error)]
enum JniFailure {
    #[error(transparent)]
    Jni(#[from] jni::errors::Error),
    /// Invalid arguments. The classes of `dev.laneway` never pass such arguments.
    #[error("{0}")]
    Misuse(&'static str),
}

type Result<T> = std::result::Result<T, JniFailure>;

/// Defines a native method. In its body, `$env` is the JNI environment of the thread.
macro_rules! method {
    ($name:ident($env:ident $(, $argument:ident: $type:ty)*) -> $output:ty $body:block) => {
        // SAFETY: the name contains the Java package, so no other symbol of the process has it.
        #[unsafe(no_mangle)]
        extern "system" fn $name<'l>(
            mut unowned: EnvUnowned<'l>,
            _class: JClass<'l>
            $(, $argument: $type)*
        ) -> $output {
            unowned.with_env(|$env| -> Result<$output> { $body }).resolve::<ThrowRuntimeExAndDefault>()
        }
    };
}

method!(Java_dev_laneway_Native_queue(_env) -> jlong {
    Ok(given(log::open_listener()))
});

method!(Java_dev_laneway_Native_take(env, queue: jlong) -> JByteArray<'l> {
    let happened = of(queue)?.take();
    Ok(env.byte_array_from_slice(happened.bytes())?)
});

method!(Java_dev_laneway_Native_wake(_env, queue: jlong) -> () {
    of(queue)?.wake();
    Ok(())
});

method!(Java_dev_laneway_Native_logLevel(_env, queue: jlong, level: jint) -> () {
    log::attend(&*of(queue)?, level);
    Ok(())
});

method!(Java_dev_laneway_Native_client(env, queue: jlong, settings: JByteArray<'l>, provider: jlong) -> JByteArray<'l> {
    let settings = env.convert_byte_array(&settings)?;
    let events = of(queue)?;
    let asked = (provider != 0).then(|| Arc::new(HostProvider { events, provider: number(provider) }) as Arc<_>);
    let made = Unpacked::new(&settings).pairs().map_err(Failure::from);
    let made = made.and_then(|pairs| {
        BuiltClient::new(value::of_texts(pairs, settings::kind_of)?, asked, |builder| builder)
    });
    numbered(env, made.map(|built| handles::keep(HandleTarget::Client(Box::new(built)))))
});

method!(Java_dev_laneway_Native_provided(env, ask: jlong, answer: JByteArray<'l>) -> () {
    provider::provided(number(ask), env.convert_byte_array(&answer)?);
    Ok(())
});

method!(Java_dev_laneway_Native_bucket(env, client: jlong, url: JByteArray<'l>) -> JByteArray<'l> {
    let url = env.convert_byte_array(&url)?;
    let made = handles::client(number(client)).and_then(|client| {
        let bucket = client.bucket(Unpacked::new(&url).text()?)?;
        let url = bucket.url();
        let mut packed = Packed::default();
        packed.number(handles::keep(HandleTarget::Bucket(bucket))).text(&url);
        Ok(packed)
    });
    answered(env, made)
});

method!(Java_dev_laneway_Native_writer(env, bucket: jlong, key: JByteArray<'l>) -> JByteArray<'l> {
    let key = env.convert_byte_array(&key)?;
    let bucket = handles::bucket(number(bucket));
    numbered(env, bucket.and_then(|bucket| verbs::writer(&bucket, &mut Unpacked::new(&key))))
});

method!(Java_dev_laneway_Native_list(env, bucket: jlong, what: JByteArray<'l>) -> JByteArray<'l> {
    let what = env.convert_byte_array(&what)?;
    let bucket = handles::bucket(number(bucket));
    numbered(env, bucket.and_then(|bucket| verbs::list(&bucket, &mut Unpacked::new(&what))))
});

method!(Java_dev_laneway_Native_job(env, client: jlong, request: JByteArray<'l>) -> JByteArray<'l> {
    let request = env.convert_byte_array(&request)?;
    let client = handles::client(number(client));
    numbered(env, client.and_then(|client| verbs::job(&client, &mut Unpacked::new(&request))))
});

method!(Java_dev_laneway_Native_progress(env, job: jlong) -> JByteArray<'l> {
    answered(env, handles::job(number(job)).map(|job| job.progress()))
});

method!(Java_dev_laneway_Native_cancelJob(_env, job: jlong) -> () {
    // If the handle is closed, the job has ended, and there is nothing to cancel.
    if let Ok(job) = handles::job(number(job)) {
        job.cancel();
    }
    Ok(())
});

method!(Java_dev_laneway_Native_plan(env, of: jlong, request: JByteArray<'l>) -> JByteArray<'l> {
    let request = env.convert_byte_array(&request)?;
    numbered(env, verbs::plan(number(of), &mut Unpacked::new(&request)))
});

method!(Java_dev_laneway_Native_stopPlan(_env, task: jlong) -> () {
    // If the handle is closed, the action has ended, and there is nothing to stop.
    if let Ok(task) = handles::plan_task(number(task)) {
        task.stop();
    }
    Ok(())
});

method!(Java_dev_laneway_Native_counters(env, client: jlong) -> JByteArray<'l> {
    let counted = handles::client(number(client)).map(|client| {
        let mut packed = Packed::default();
        described::numbers(&mut packed, described::counters(&client.counters()).into());
        packed
    });
    answered(env, counted)
});

method!(Java_dev_laneway_Native_close(_env, of: jlong) -> () {
    handles::close(number(of));
    Ok(())
});

method!(Java_dev_laneway_Native_begin(env, queue: jlong, call: jlong, verb: jint, object: jlong, arguments: JByteArray<'l>) -> () {
    let ending = PendingAnswer::new(&of(queue)?, number(call));
    let arguments = env.convert_byte_array(&arguments)?;
    let work = verbs::work(verb, number(object), &arguments, Memory::None, &ending);
    call::begin(ending, work);
    Ok(())
});

method!(Java_dev_laneway_Native_lend(env, queue: jlong, call: jlong, verb: jint, object: jlong, arguments: JByteArray<'l>, memory: JByteBuffer<'l>, at: jint, length: jint) -> () {
    let ending = PendingAnswer::new(&of(queue)?, number(call));
    let arguments = env.convert_byte_array(&arguments)?;
    let (start, len) = part(env, &memory, at, length)?;
    // SAFETY: `part` has checked that the bytes lie within the buffer. Java's `Call` keeps the buffer alive
    // until the queue reports the call's end.
    let lent = Memory::Lent(unsafe { LentMemory::new(start, len, &ending) });
    let work = verbs::work(verb, number(object), &arguments, lent, &ending);
    call::begin(ending, work);
    Ok(())
});

method!(Java_dev_laneway_Native_lendSeveral(env, queue: jlong, call: jlong, verb: jint, object: jlong, arguments: JByteArray<'l>, memory: JObjectArray<'l, JByteBuffer<'static>>, parts: JIntArray<'l>) -> () {
    let ending = PendingAnswer::new(&of(queue)?, number(call));
    let arguments = env.convert_byte_array(&arguments)?;
    let mut places = vec![0; parts.len(env)?];
    parts.get_region(env, 0, &mut places)?;
    let mut several = Vec::with_capacity(places.len() / 2);
    for (index, place) in places.chunks_exact(2).enumerate() {
        let buffer = memory.get_element(env, index)?;
        let (start, len) = part(env, &buffer, place[0], place[1])?;
        // Delete the reference now: a JNI frame has room for few of them, and there may be thousands of ranges.
        env.delete_local_ref(buffer);
        // SAFETY: `part` has checked that the bytes lie within the buffer. Java's `RangesCall` keeps the buffer
        // alive until the queue reports the call's end.
        several.push(unsafe { LentMemory::new(start, len, &ending) });
    }
    let work = verbs::work(verb, number(object), &arguments, Memory::Several(several), &ending);
    call::begin(ending, work);
    Ok(())
});

method!(Java_dev_laneway_Native_copied(env, queue: jlong, call: jlong, verb: jint, object: jlong, arguments: JByteArray<'l>, bytes: JByteArray<'l>, at: jint, length: jint) -> () {
    let ending = PendingAnswer::new(&of(queue)?, number(call));
    let arguments = env.convert_byte_array(&arguments)?;
    let bytes = Memory::Copied(region(env, &bytes, at, length)?);
    let work = verbs::work(verb, number(object), &arguments, bytes, &ending);
    call::begin(ending, work);
    Ok(())
});

method!(Java_dev_laneway_Native_cancel(_env, queue: jlong, call: jlong) -> () {
    call::cancel(&*of(queue)?, number(call));
    Ok(())
});

method!(Java_dev_laneway_Native_giveUp(_env, queue: jlong, call: jlong, range: jint) -> () {
    call::give_up(&*of(queue)?, number(call), usize::try_from(range).unwrap_or(usize::MAX));
    Ok(())
});

method!(Java_dev_laneway_Native_bodyToMemory(env, body: jlong, from: jint, memory: JByteBuffer<'l>, at: jint, length: jint) -> () {
    let body = held(body, from, length)?;
    copied(env, &body, &memory, at, length)?;
    Ok(())
});

method!(Java_dev_laneway_Native_bodyToArray(env, body: jlong, from: jint, array: JByteArray<'l>, at: jint, length: jint) -> () {
    let body = held(body, from, length)?;
    Ok(array.set_region(env, at, signed(&body))?)
});

method!(Java_dev_laneway_Native_readNowToMemory(env, reader: jlong, position: jlong, memory: JByteBuffer<'l>, at: jint, length: jint) -> jint {
    let Some(bytes) = here(reader, position, length) else { return Ok(-1) };
    copied(env, &bytes, &memory, at, length)
});

method!(Java_dev_laneway_Native_readNowToArray(env, reader: jlong, position: jlong, array: JByteArray<'l>, at: jint, length: jint) -> jint {
    let Some(bytes) = here(reader, position, length) else { return Ok(-1) };
    array.set_region(env, at, signed(&bytes))?;
    Ok(jint::try_from(bytes.len()).unwrap_or(jint::MAX))
});

method!(Java_dev_laneway_Native_dropAhead(_env, reader: jlong) -> () {
    // If the reader is closed, it has already freed its bytes.
    if let Ok(reader) = handles::reader(number(reader)) {
        verbs::drop_ahead(&reader);
    }
    Ok(())
});

method!(Java_dev_laneway_Native_writeNowFromMemory(env, writer: jlong, memory: JByteBuffer<'l>, at: jint, length: jint) -> jint {
    let (start, len) = part(env, &memory, at, length)?;
    if len == 0 {
        return Ok(0);
    }
    // SAFETY: `part` has checked that the bytes lie within the buffer, which the running method keeps alive.
    let bytes = unsafe { slice::from_raw_parts(start, len) };
    Ok(taken(writer, bytes))
});

method!(Java_dev_laneway_Native_writeNowFromArray(env, writer: jlong, array: JByteArray<'l>, at: jint, length: jint) -> jint {
    Ok(taken(writer, &region(env, &array, at, length)?))
});

/// Converts a number to Java's `long`, which is signed.
fn given(number: u64) -> jlong {
    number.cast_signed()
}

fn number(given: jlong) -> u64 {
    given.cast_unsigned()
}

fn of(number: jlong) -> Result<Arc<Events>> {
    log::listener(self::number(number)).ok_or(JniFailure::Misuse("there is no such queue"))
}

fn answered<'l>(env: &mut Env<'l>, outcome: std::result::Result<Packed, Failure>) -> Result<JByteArray<'l>> {
    Ok(env.byte_array_from_slice(answer(outcome).bytes())?)
}

fn numbered<'l>(env: &mut Env<'l>, outcome: std::result::Result<u64, Failure>) -> Result<JByteArray<'l>> {
    let packed = outcome.map(|number| {
        let mut packed = Packed::default();
        packed.number(number);
        packed
    });
    answered(env, packed)
}

/// Returns the address and the length of a part of a direct buffer.
///
/// # Errors
/// Fails if the part isn't within the buffer.
fn part(env: &Env<'_>, memory: &JByteBuffer<'_>, at: jint, length: jint) -> Result<(*mut u8, usize)> {
    let outside = || JniFailure::Misuse("the offset and length aren't within the buffer");
    let (at, len) =
        (usize::try_from(at).map_err(|_| outside())?, usize::try_from(length).map_err(|_| outside())?);
    if len == 0 {
        // The JVM may return any address for an empty buffer.
        return Ok((std::ptr::NonNull::dangling().as_ptr(), 0));
    }
    let (start, capacity) = (env.get_direct_buffer_address(memory)?, env.get_direct_buffer_capacity(memory)?);
    if at.checked_add(len).is_none_or(|end| end > capacity) {
        return Err(outside());
    }
    // SAFETY: the part was checked to be within the buffer.
    Ok((unsafe { start.add(at) }, len))
}

/// Copies bytes to a part of a direct buffer, as many as fit there. Returns their number.
fn copied(env: &Env<'_>, bytes: &[u8], memory: &JByteBuffer<'_>, at: jint, length: jint) -> Result<jint> {
    let (start, len) = part(env, memory, at, length)?;
    let count = bytes.len().min(len);
    // SAFETY: `part` has checked that there is room. The bytes are another allocation, and the running method
    // keeps the buffer alive.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, count) };
    Ok(jint::try_from(count).unwrap_or(jint::MAX))
}

/// Copies a part of an array.
///
/// # Errors
/// Fails if the part isn't within the array.
fn region(env: &Env<'_>, array: &JByteArray<'_>, at: jint, length: jint) -> Result<Vec<u8>> {
    let len = usize::try_from(length).map_err(|_| JniFailure::Misuse("the length is negative"))?;
    let mut bytes = vec![0; len];
    // SAFETY: `i8` and `u8` have the same layout.
    let as_signed = unsafe { slice::from_raw_parts_mut(bytes.as_mut_ptr().cast::<jbyte>(), len) };
    array.get_region(env, at, as_signed)?;
    Ok(bytes)
}

/// Returns the same bytes as Java's signed type.
fn signed(bytes: &[u8]) -> &[jbyte] {
    // SAFETY: `u8` and `i8` have the same layout.
    unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

/// Returns a part of a body. Cuts it off at the body's end.
///
/// # Errors
/// Fails if the body was closed.
fn held(of: jlong, from: jint, length: jint) -> Result<bytes::Bytes> {
    let body = handles::body(number(of)).map_err(|_| JniFailure::Misuse("the body is closed"))?;
    let from = usize::try_from(from).unwrap_or(usize::MAX).min(body.len());
    let len = usize::try_from(length).unwrap_or(0).min(body.len() - from);
    Ok(body.slice(from..from + len))
}

/// Returns bytes of an object that have already arrived. `None` means that the caller must wait for them.
fn here(reader: jlong, position: jlong, length: jint) -> Option<bytes::Bytes> {
    let reader = handles::reader(number(reader)).ok()?;
    verbs::read_now(&reader, number(position), usize::try_from(length).ok()?)
}

/// Offers bytes to a writer. Returns how many of them it accepts without waiting.
fn taken(writer: jlong, bytes: &[u8]) -> jint {
    let taken = handles::writer(number(writer)).map_or(0, |writer| verbs::write_now(&writer, bytes));
    jint::try_from(taken).unwrap_or(jint::MAX)
}
