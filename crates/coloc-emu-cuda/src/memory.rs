//! Device and host memory.

use crate::answer::{Code, answer};
use crate::library::{Allocation, Library, with};
use crate::unified;
use coloc_emu::abi::{get, put};
use coloc_model::Bytes;
use std::ffi::{c_int, c_uint, c_ulonglong};

fn allocate(library: &mut Library, length: usize) -> Result<usize, Code> {
    if length == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let place = library.current()?.place;
    let amount = Bytes(length as u64);
    library.client.allocate(place, amount)?;
    let Some(address) = unified::map(length) else {
        library.client.release(place, amount)?;
        return Err(Code::OUT_OF_MEMORY);
    };
    library.allocations.insert(address, Allocation { place, length });
    Ok(address)
}

fn free(library: &mut Library, address: usize) -> Result<(), Code> {
    let allocation = library.allocations.remove(&address).ok_or(Code::INVALID_VALUE)?;
    unified::unmap(address, allocation.length);
    Ok(library.client.release(allocation.place, Bytes(allocation.length as u64))?)
}

fn allocate_into(target: *mut c_ulonglong, length: usize) -> c_int {
    answer(|| {
        get(target)?;
        with(|library| Ok(put(target, allocate(library, length)? as c_ulonglong)?))
    })
}

fn free_at(address: c_ulonglong) -> c_int {
    answer(|| {
        // As with `free`, nothing is nothing.
        if address == 0 { Ok(()) } else { with(|library| free(library, address as usize)) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAlloc_v2(target: *mut c_ulonglong, length: usize) -> c_int {
    allocate_into(target, length)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocAsync(target: *mut c_ulonglong, length: usize, _stream: usize) -> c_int {
    allocate_into(target, length)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocManaged(target: *mut c_ulonglong, length: usize, _flags: c_uint) -> c_int {
    allocate_into(target, length)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocPitch_v2(
    target: *mut c_ulonglong,
    pitch: *mut usize,
    width: usize,
    height: usize,
    _element: c_uint,
) -> c_int {
    answer(|| {
        get(target)?;
        let row = width.checked_next_multiple_of(512).ok_or(Code::INVALID_VALUE)?;
        let length = row.checked_mul(height).ok_or(Code::INVALID_VALUE)?;
        put(pitch, row)?;
        with(|library| Ok(put(target, allocate(library, length)? as c_ulonglong)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: c_ulonglong) -> c_int {
    free_at(address)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeAsync(address: c_ulonglong, _stream: usize) -> c_int {
    free_at(address)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemGetInfo_v2(free_out: *mut usize, total: *mut usize) -> c_int {
    answer(|| {
        with(|library| {
            let context = library.current()?;
            let view = library.client.memory(context.place)?;
            put(free_out, view.free().0 as usize)?;
            Ok(put(total, view.total.0 as usize)?)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemGetAddressRange_v2(
    base: *mut c_ulonglong,
    size: *mut usize,
    address: c_ulonglong,
) -> c_int {
    answer(|| {
        with(|library| {
            let (start, length) = library.find_allocation(address as usize)?;
            if !base.is_null() {
                put(base, start as c_ulonglong)?;
            }
            if size.is_null() { Ok(()) } else { Ok(put(size, length)?) }
        })
    })
}

impl Library {
    /// Start and length of the allocation that holds an address.
    pub(crate) fn find_allocation(&self, address: usize) -> Result<(usize, usize), Code> {
        let (&start, allocation) =
            self.allocations.range(..=address).next_back().ok_or(Code::INVALID_VALUE)?;
        let inside = address - start < allocation.length;
        if inside { Ok((start, allocation.length)) } else { Err(Code::INVALID_VALUE) }
    }
}

fn allocate_host(target: *mut usize, length: usize) -> c_int {
    answer(|| {
        get(target)?;
        if length == 0 {
            return Err(Code::INVALID_VALUE);
        }
        with(|library| {
            library.current()?;
            let address = unified::map(length).ok_or(Code::OUT_OF_MEMORY)?;
            library.host_allocations.insert(address, length);
            Ok(put(target, address)?)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocHost_v2(target: *mut usize, length: usize) -> c_int {
    allocate_host(target, length)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostAlloc(target: *mut usize, length: usize, _flags: c_uint) -> c_int {
    allocate_host(target, length)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeHost(address: usize) -> c_int {
    answer(|| {
        with(|library| {
            let length = library.host_allocations.remove(&address).ok_or(Code::INVALID_VALUE)?;
            unified::unmap(address, length);
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostRegister_v2(_address: usize, _length: usize, _flags: c_uint) -> c_int {
    answer(|| with(|_| Ok(())))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostUnregister(_address: usize) -> c_int {
    answer(|| with(|_| Ok(())))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostGetDevicePointer_v2(
    target: *mut c_ulonglong,
    address: usize,
    _flags: c_uint,
) -> c_int {
    answer(|| Ok(put(target, address as c_ulonglong)?))
}

/// Kind of memory (2), device pointer (3) and host pointer (4), ordinal (9).
#[unsafe(no_mangle)]
extern "C" fn cuPointerGetAttribute(
    data: *mut u8,
    attribute: c_uint,
    address: c_ulonglong,
) -> c_int {
    const DEVICE: c_uint = 2;
    answer(|| {
        with(|library| {
            let (start, _) = library.find_allocation(address as usize)?;
            match attribute {
                2 => Ok(put(data.cast::<c_uint>(), DEVICE)?),
                3 | 4 => Ok(put(data.cast::<c_ulonglong>(), address)?),
                9 => {
                    let place = library.allocations[&start].place;
                    let ordinal = library.devices.iter().position(|own| *own == place);
                    Ok(put(data.cast::<c_int>(), ordinal.unwrap_or(0) as c_int)?)
                }
                _ => Err(Code::NOT_SUPPORTED),
            }
        })
    })
}
