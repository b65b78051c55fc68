//! Copies and fills. Device pointers are addresses of this process, so both directions are alike.

use crate::answer::{Code, answer};
use crate::library::with;
use coloc_emu::abi::{copy_within, put_slice};
use std::ffi::{c_int, c_uchar, c_uint, c_ulonglong, c_ushort};
use std::ptr;

fn copy(target: u64, source: u64, length: usize) -> c_int {
    answer(|| {
        with(|library| library.current().map(|_| ()))?;
        Ok(copy_within(target as usize, source as usize, length)?)
    })
}

/// Copies by direction; each name has the order target, source, length.
macro_rules! copies {
    ($(fn $name:ident($($extra:ident: $type:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            target: c_ulonglong,
            source: c_ulonglong,
            length: usize,
            $($extra: $type),*
        ) -> c_int {
            copy(target, source, length)
        }
    )*};
}

copies! {
    fn cuMemcpy();
    fn cuMemcpyAsync(_stream: usize);
    fn cuMemcpyHtoD_v2();
    fn cuMemcpyDtoH_v2();
    fn cuMemcpyDtoD_v2();
    fn cuMemcpyHtoDAsync_v2(_stream: usize);
    fn cuMemcpyDtoHAsync_v2(_stream: usize);
    fn cuMemcpyDtoDAsync_v2(_stream: usize);
}

/// Fills in pieces, so that a large fill needs no large buffer.
fn fill<T: Copy>(target: u64, value: T, count: usize) -> c_int {
    answer(|| {
        with(|library| library.current().map(|_| ()))?;
        count.checked_mul(size_of::<T>()).ok_or(Code::INVALID_VALUE)?;
        let piece = vec![value; count.min(64 << 10)];
        let mut done = 0;
        while done < count {
            let length = piece.len().min(count - done);
            let at = (target as usize).wrapping_add(done * size_of::<T>());
            put_slice(ptr::with_exposed_provenance_mut::<T>(at), &piece[..length])?;
            done += length;
        }
        Ok(())
    })
}

/// Fills by width of the value.
macro_rules! fills {
    ($(fn $name:ident($value:ty $(, $extra:ident: $type:ty)*);)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            target: c_ulonglong,
            value: $value,
            count: usize,
            $($extra: $type),*
        ) -> c_int {
            fill(target, value, count)
        }
    )*};
}

fills! {
    fn cuMemsetD8_v2(c_uchar);
    fn cuMemsetD16_v2(c_ushort);
    fn cuMemsetD32_v2(c_uint);
    fn cuMemsetD8Async(c_uchar, _stream: usize);
    fn cuMemsetD16Async(c_ushort, _stream: usize);
    fn cuMemsetD32Async(c_uint, _stream: usize);
}
