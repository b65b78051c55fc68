//! What the exported functions share: no panic leaves them, and no bad pointer brings the caller down.
//!
//! Addresses that callers hand in are used through the kernel, which answers with an error where a plain
//! store would end the process. A real driver does not do that; an emulator that people test against can.
#![allow(unsafe_code)] // Each block says why it is sound.
#![allow(clippy::not_unsafe_ptr_arg_deref)] // Exported functions take any pointer; the kernel judges it.

use crate::sys::{Copied, copy_checked};
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// An address that cannot be used: null, misaligned, or not mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadPointer;

/// Runs an exported function's body; `otherwise` is the answer if it panics.
pub fn guard<R>(otherwise: R, body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

fn usable<T>(pointer: *const T) -> Result<(), BadPointer> {
    if pointer.is_null() || !pointer.is_aligned() { Err(BadPointer) } else { Ok(()) }
}

/// Stores a value where the caller wants it.
pub fn put<T: Copy>(target: *mut T, value: T) -> Result<(), BadPointer> {
    put_slice(target, &[value])
}

/// Stores values one after another where the caller wants them.
pub fn put_slice<T: Copy>(target: *mut T, values: &[T]) -> Result<(), BadPointer> {
    if values.is_empty() {
        return Ok(());
    }
    usable(target)?;
    let source = values.as_ptr().cast_mut().cast();
    match copy_checked(source, target.cast(), size_of_val(values), true) {
        Copied::All => Ok(()),
        Copied::BadAddress => Err(BadPointer),
        Copied::Unavailable => {
            // SAFETY: not null and aligned; beyond that the caller of a C function is trusted, as in C.
            unsafe { target.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
            Ok(())
        }
    }
}

/// Loads a value that the caller points to. `T` must be a C struct for which every bit pattern is valid.
pub fn get<T: Copy>(source: *const T) -> Result<T, BadPointer> {
    usable(source)?;
    let mut value = MaybeUninit::<T>::uninit();
    let local = value.as_mut_ptr();
    match copy_checked(local.cast(), source.cast_mut().cast(), size_of::<T>(), false) {
        Copied::All => {}
        Copied::BadAddress => return Err(BadPointer),
        // SAFETY: not null and aligned; beyond that the caller of a C function is trusted, as in C.
        Copied::Unavailable => unsafe { local.copy_from_nonoverlapping(source, 1) },
    }
    // SAFETY: all bytes were copied, and T takes any bytes.
    Ok(unsafe { value.assume_init() })
}

/// Loads a NUL-terminated text of at most `limit` bytes; what is not UTF-8 is replaced.
pub fn get_text(source: *const c_char, limit: usize) -> Result<String, BadPointer> {
    let mut bytes = Vec::new();
    let mut at = source.cast::<u8>();
    while bytes.len() < limit {
        match get(at)? {
            0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            byte => bytes.push(byte),
        }
        at = at.wrapping_add(1);
    }
    Err(BadPointer)
}

/// Stores a text with its NUL; `Ok(false)` if `length` is too short for it.
pub fn put_text(target: *mut c_char, length: usize, text: &str) -> Result<bool, BadPointer> {
    usable(target)?;
    if length <= text.len() {
        return Ok(false);
    }
    let bytes: Vec<c_char> = text.bytes().chain([0]).map(|byte| byte as c_char).collect();
    put_slice(target, &bytes)?;
    Ok(true)
}

/// Copies memory of this process from one address to another; neither is trusted. They must not overlap.
pub fn copy_within(target: usize, source: usize, length: usize) -> Result<(), BadPointer> {
    let mut done = 0;
    while done < length {
        let piece = (length - done).min(1 << 30);
        let near = ptr::with_exposed_provenance_mut::<u8>(source.wrapping_add(done));
        let far = ptr::with_exposed_provenance_mut::<u8>(target.wrapping_add(done));
        usable(near)?;
        usable(far)?;
        match copy_checked(near, far, piece, true) {
            Copied::All => {}
            Copied::BadAddress => return Err(BadPointer),
            // SAFETY: not null; beyond that the caller of a C function is trusted, as in C.
            Copied::Unavailable => unsafe { far.copy_from(near, piece) },
        }
        done += piece;
    }
    Ok(())
}

/// A text as a fixed array of C characters, cut where it is too long.
pub fn fixed_text<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    for (slot, byte) in array[..N - 1].iter_mut().zip(text.bytes()) {
        *slot = byte as c_char;
    }
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_addresses_are_refused_and_good_ones_used() {
        let mut value = 0u32;
        assert_eq!(put(&mut value, 7), Ok(()));
        assert_eq!(value, 7);
        assert_eq!(get(&value), Ok(7));
        for address in [0usize, 1, 4, 0xdead_beec, usize::MAX - 3, 0x8000_0000_0000_0000] {
            let bad = ptr::without_provenance_mut::<u32>(address);
            assert_eq!(put(bad, 7), Err(BadPointer), "{address:#x}");
            assert_eq!(get(bad), Err(BadPointer), "{address:#x}");
        }
        // A constant is mapped, but not ours to write to.
        static CONSTANT: u32 = 3;
        assert_eq!(put(ptr::from_ref(&CONSTANT).cast_mut(), 7), Err(BadPointer));
    }

    #[test]
    fn texts_end_and_are_bounded() {
        let mut room = [1 as c_char; 8];
        assert_eq!(put_text(room.as_mut_ptr(), 8, "seven.."), Ok(true));
        assert_eq!(get_text(room.as_ptr(), 8).as_deref(), Ok("seven.."));
        assert_eq!(put_text(room.as_mut_ptr(), 8, "eight..."), Ok(false));
        room = [1; 8];
        assert_eq!(get_text(room.as_ptr(), 8), Err(BadPointer));
    }

    #[test]
    fn a_panic_becomes_an_answer() {
        assert_eq!(guard(999, || panic!("inside")), 999);
    }
}
