//! Streams and events. Work is over as soon as it is given, so there is never anything to wait for.

use crate::answer::{Code, answer};
use crate::library::with;
use coloc_emu::abi::put;
use coloc_emu::host_now_ns;
use std::ffi::{c_int, c_uint};

fn create_stream(target: *mut usize) -> c_int {
    answer(|| {
        with(|library| {
            library.current()?;
            let handle = library.new_handle();
            put(target, handle)?;
            library.streams.insert(handle, ());
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamCreate(target: *mut usize, _flags: c_uint) -> c_int {
    create_stream(target)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamCreateWithPriority(
    target: *mut usize,
    _flags: c_uint,
    _priority: c_int,
) -> c_int {
    create_stream(target)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(stream: usize) -> c_int {
    answer(|| with(|library| library.streams.remove(&stream).ok_or(Code::INVALID_HANDLE)))
}

/// The default streams (0, 1, 2) and those that were created.
fn check_stream(stream: usize) -> c_int {
    answer(|| {
        with(|library| {
            let known = stream <= 2 || library.streams.contains_key(&stream);
            if known { Ok(()) } else { Err(Code::INVALID_HANDLE) }
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: usize) -> c_int {
    check_stream(stream)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamQuery(stream: usize) -> c_int {
    check_stream(stream)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(stream: usize, _event: usize, _flags: c_uint) -> c_int {
    check_stream(stream)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamIsCapturing(stream: usize, status: *mut c_int) -> c_int {
    match check_stream(stream) {
        0 => answer(|| Ok(put(status, 0)?)),
        refused => refused,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuEventCreate(target: *mut usize, _flags: c_uint) -> c_int {
    answer(|| {
        with(|library| {
            library.current()?;
            let handle = library.new_handle();
            put(target, handle)?;
            library.events.insert(handle, None);
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: usize) -> c_int {
    answer(|| with(|library| library.events.remove(&event).map(|_| ()).ok_or(Code::INVALID_HANDLE)))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: usize, _stream: usize) -> c_int {
    answer(|| {
        with(|library| {
            let slot = library.events.get_mut(&event).ok_or(Code::INVALID_HANDLE)?;
            *slot = Some(host_now_ns());
            Ok(())
        })
    })
}

fn check_event(event: usize) -> c_int {
    answer(|| with(|library| library.events.get(&event).map(|_| ()).ok_or(Code::INVALID_HANDLE)))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: usize) -> c_int {
    check_event(event)
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(event: usize) -> c_int {
    check_event(event)
}

fn elapsed(millis: *mut f32, start: usize, end: usize) -> c_int {
    answer(|| {
        with(|library| {
            let at = |event: usize| {
                library.events.get(&event).copied().flatten().ok_or(Code::INVALID_HANDLE)
            };
            let (start, end) = (at(start)?, at(end)?);
            Ok(put(millis, (end as f64 - start as f64) as f32 / 1e6)?)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventElapsedTime(millis: *mut f32, start: usize, end: usize) -> c_int {
    elapsed(millis, start, end)
}

#[unsafe(no_mangle)]
extern "C" fn cuEventElapsedTime_v2(millis: *mut f32, start: usize, end: usize) -> c_int {
    elapsed(millis, start, end)
}
