//! Entry points by name, and what the codes mean.

use crate::answer::{Code, answer};
use crate::table::ENTRIES;
use coloc_emu::abi::{get_text, put};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

/// Revisions of a function and the CUDA version that brought each. Where nothing is said, `_v2` came with 3.2.
const REVISIONS: [(&str, &[(&str, c_int)]); 2] = [
    ("cuCtxCreate", &[("_v4", 12_050), ("_v3", 11_040), ("_v2", 3020)]),
    ("cuDeviceGetUuid", &[("_v2", 11_040)]),
];

fn find(name: &str) -> Option<*const c_void> {
    let at = ENTRIES.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    Some(ENTRIES[at].1 as *const c_void)
}

/// The newest revision that a program of this CUDA version knows.
fn resolve(name: &str, version: c_int) -> Option<*const c_void> {
    let own = REVISIONS.iter().find(|(known, _)| *known == name);
    let revisions = own.map_or(&[("_v2", 3020)][..], |(_, revisions)| revisions);
    revisions
        .iter()
        .filter(|(_, since)| version >= *since)
        .find_map(|(suffix, _)| find(&format!("{name}{suffix}")))
        .or_else(|| find(name))
}

fn get_address(
    name: *const c_char,
    target: *mut *const c_void,
    version: c_int,
) -> Result<bool, Code> {
    let found = resolve(&get_text(name, 256)?, version);
    put(target, found.unwrap_or(ptr::null()))?;
    Ok(found.is_some())
}

#[unsafe(no_mangle)]
extern "C" fn cuGetProcAddress(
    name: *const c_char,
    target: *mut *const c_void,
    version: c_int,
    _flags: u64,
) -> c_int {
    answer(|| if get_address(name, target, version)? { Ok(()) } else { Err(Code::NOT_FOUND) })
}

#[unsafe(no_mangle)]
extern "C" fn cuGetProcAddress_v2(
    name: *const c_char,
    target: *mut *const c_void,
    version: c_int,
    _flags: u64,
    status: *mut c_int,
) -> c_int {
    const NOT_FOUND: c_int = 1;
    answer(|| {
        let found = get_address(name, target, version)?;
        if !status.is_null() {
            put(status, if found { 0 } else { NOT_FOUND })?;
        }
        if found { Ok(()) } else { Err(Code::NOT_FOUND) }
    })
}

/// Export tables are undocumented and some of them prove a driver to be NVIDIA's: none is answered.
#[unsafe(no_mangle)]
extern "C" fn cuGetExportTable(_table: *mut *const c_void, _id: *const c_void) -> c_int {
    Code::NOT_FOUND.0
}

/// Name and meaning of a code.
fn texts(code: c_int) -> Option<(&'static CStr, &'static CStr)> {
    Some(match code {
        0 => (c"CUDA_SUCCESS", c"no error"),
        1 => (c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
        2 => (c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
        3 => (c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
        46 => {
            (c"CUDA_ERROR_DEVICE_UNAVAILABLE", c"CUDA-capable device(s) is/are busy or unavailable")
        }
        100 => (c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected"),
        101 => (c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
        201 => (c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
        214 => (c"CUDA_ERROR_ECC_UNCORRECTABLE", c"uncorrectable ECC error encountered"),
        400 => (c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
        500 => (c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
        709 => (c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"context is destroyed"),
        801 => (c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported"),
        805 => (
            c"CUDA_ERROR_MPS_CONNECTION_FAILED",
            c"MPS client failed to connect to the MPS control daemon or the MPS server",
        ),
        808 => (
            c"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED",
            c"the hardware resources required to support MPS clients have been exhausted",
        ),
        999 => (c"CUDA_ERROR_UNKNOWN", c"unknown error"),
        _ => return None,
    })
}

fn put_static(target: *mut *const c_char, text: Option<&'static CStr>) -> c_int {
    answer(|| {
        put(target, text.map_or(ptr::null(), CStr::as_ptr))?;
        text.map(|_| ()).ok_or(Code::INVALID_VALUE)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(code: c_int, target: *mut *const c_char) -> c_int {
    put_static(target, texts(code).map(|(name, _)| name))
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(code: c_int, target: *mut *const c_char) -> c_int {
    put_static(target, texts(code).map(|(_, meaning)| meaning))
}

#[unsafe(no_mangle)]
extern "C" fn cuThreadExchangeStreamCaptureMode(_mode: *mut c_uint) -> c_int {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_resolves_and_revisions_follow_the_version() {
        assert!(ENTRIES.is_sorted_by(|a, b| a.0 < b.0));
        assert!(ENTRIES.iter().all(|(name, _)| find(name).is_some()));
        assert_eq!(resolve("cuMemAlloc", 12_000), find("cuMemAlloc_v2"));
        assert_eq!(resolve("cuCtxCreate", 12_090), find("cuCtxCreate_v4"));
        assert_eq!(resolve("cuCtxCreate", 12_000), find("cuCtxCreate_v3"));
        assert_eq!(resolve("cuCtxCreate", 4000), find("cuCtxCreate_v2"));
        assert_eq!(resolve("cuInit", 12_000), find("cuInit"));
        assert_eq!(resolve("cuNoSuchThing", 12_000), None);
    }
}
