//! Contexts: created, primary, current.

use crate::answer::{Code, answer};
use crate::library::{Context, Library, current_handle, pop_current, push_current, with};
use coloc_emu::abi::{get, put};
use std::ffi::{c_int, c_uint, c_void};

fn open(library: &mut Library, ordinal: c_int) -> Result<usize, Code> {
    let (device, place) = library.device(ordinal)?;
    library.client.open_context(place)?;
    let handle = library.new_handle();
    library.contexts.insert(handle, Context { device, place });
    Ok(handle)
}

fn close(library: &mut Library, handle: usize) -> Result<(), Code> {
    let context = library.contexts.remove(&handle).ok_or(Code::INVALID_CONTEXT)?;
    let last = !library.contexts.values().any(|other| other.place == context.place);
    if last {
        let gone = library.allocations.iter().filter(|(_, own)| own.place == context.place);
        let gone: Vec<usize> = gone.map(|(&address, _)| address).collect();
        for address in gone {
            if let Some(allocation) = library.allocations.remove(&address) {
                crate::unified::unmap(address, allocation.length);
            }
        }
    }
    Ok(library.client.close_context(context.place)?)
}

fn create(target: *mut usize, ordinal: c_int) -> c_int {
    answer(|| {
        get(target)?;
        let handle = with(|library| open(library, ordinal))?;
        push_current(handle);
        Ok(put(target, handle)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxCreate(target: *mut usize, _flags: c_uint, device: c_int) -> c_int {
    create(target, device)
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxCreate_v2(target: *mut usize, _flags: c_uint, device: c_int) -> c_int {
    create(target, device)
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxCreate_v3(
    target: *mut usize,
    _affinity: *const c_void,
    _count: c_int,
    _flags: c_uint,
    device: c_int,
) -> c_int {
    create(target, device)
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxCreate_v4(
    target: *mut usize,
    _parameters: *const c_void,
    _flags: c_uint,
    device: c_int,
) -> c_int {
    create(target, device)
}

fn destroy(handle: usize) -> c_int {
    answer(|| {
        with(|library| close(library, handle))?;
        if current_handle() == Some(handle) {
            pop_current();
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxDestroy(context: usize) -> c_int {
    destroy(context)
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxDestroy_v2(context: usize) -> c_int {
    destroy(context)
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxPushCurrent_v2(context: usize) -> c_int {
    answer(|| {
        with(|library| library.contexts.get(&context).map(|_| ()).ok_or(Code::INVALID_CONTEXT))?;
        push_current(context);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxPopCurrent_v2(target: *mut usize) -> c_int {
    answer(|| {
        let handle = pop_current().ok_or(Code::INVALID_CONTEXT)?;
        if target.is_null() { Ok(()) } else { Ok(put(target, handle)?) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: usize) -> c_int {
    answer(|| {
        if context == 0 {
            pop_current();
            return Ok(());
        }
        with(|library| library.contexts.get(&context).map(|_| ()).ok_or(Code::INVALID_CONTEXT))?;
        pop_current();
        push_current(context);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetCurrent(target: *mut usize) -> c_int {
    answer(|| {
        with(|_| Ok(()))?;
        Ok(put(target, current_handle().unwrap_or(0))?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetDevice(device: *mut c_int) -> c_int {
    answer(|| with(|library| Ok(put(device, library.current()?.device as c_int)?)))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetFlags(flags: *mut c_uint) -> c_int {
    answer(|| {
        with(|library| {
            library.current()?;
            Ok(put(flags, 0)?)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetApiVersion(context: usize, version: *mut c_uint) -> c_int {
    answer(|| {
        with(|library| {
            if context != 0 {
                library.contexts.get(&context).ok_or(Code::INVALID_CONTEXT)?;
            }
            Ok(put(version, 3020)?)
        })
    })
}

/// Fails if the context was ended from outside or its GPU is lost: this is where programs find out.
#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> c_int {
    answer(|| {
        with(|library| {
            let context = library.current()?;
            library.client.memory(context.place)?;
            match library.client.view()?.ended {
                Some(_) => Err(Code::CONTEXT_IS_DESTROYED),
                None => Ok(()),
            }
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> c_int {
    answer(|| {
        put(least, 0)?;
        Ok(put(greatest, -5)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetLimit(value: *mut usize, _limit: c_uint) -> c_int {
    answer(|| with(|library| library.current().and_then(|_| Ok(put(value, 8 << 20)?))))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetLimit(_limit: c_uint, _value: usize) -> c_int {
    answer(|| with(|library| library.current().map(|_| ())))
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRetain(target: *mut usize, device: c_int) -> c_int {
    answer(|| {
        get(target)?;
        with(|library| {
            let (index, _) = library.device(device)?;
            let (handle, retained) = match library.primary.get(&index) {
                Some(&(handle, retained)) => (handle, retained),
                None => (open(library, device)?, 0),
            };
            library.primary.insert(index, (handle, retained + 1));
            Ok(put(target, handle)?)
        })
    })
}

fn release(device: c_int, all: bool) -> c_int {
    answer(|| {
        with(|library| {
            let (index, _) = library.device(device)?;
            let Some(&(handle, retained)) = library.primary.get(&index) else {
                return if all { Ok(()) } else { Err(Code::INVALID_CONTEXT) };
            };
            if retained > 1 && !all {
                library.primary.insert(index, (handle, retained - 1));
                return Ok(());
            }
            library.primary.remove(&index);
            close(library, handle)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease(device: c_int) -> c_int {
    release(device, false)
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int {
    release(device, false)
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxReset(device: c_int) -> c_int {
    release(device, true)
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxReset_v2(device: c_int) -> c_int {
    release(device, true)
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, _flags: c_uint) -> c_int {
    answer(|| with(|library| library.device(device).map(|_| ())))
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxGetState(
    device: c_int,
    flags: *mut c_uint,
    active: *mut c_int,
) -> c_int {
    answer(|| {
        with(|library| {
            let (index, _) = library.device(device)?;
            put(flags, 0)?;
            Ok(put(active, library.primary.contains_key(&index).into())?)
        })
    })
}
