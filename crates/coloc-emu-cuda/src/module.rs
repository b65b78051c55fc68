//! Modules and launches. A kernel does nothing but count, which tells the fleet that the process works.

use crate::answer::{Code, answer};
use crate::library::with;
use coloc_emu::abi::{get_text, put};
use std::ffi::{c_char, c_int, c_uint, c_void};

fn load(target: *mut usize) -> c_int {
    answer(|| {
        with(|library| {
            library.current()?;
            let handle = library.new_handle();
            put(target, handle)?;
            library.modules.insert(handle, ());
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleLoad(target: *mut usize, _file: *const c_char) -> c_int {
    load(target)
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleLoadData(target: *mut usize, _image: *const c_void) -> c_int {
    load(target)
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleLoadDataEx(
    target: *mut usize,
    _image: *const c_void,
    _count: c_uint,
    _options: *mut c_int,
    _values: *mut *mut c_void,
) -> c_int {
    load(target)
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleLoadFatBinary(target: *mut usize, _image: *const c_void) -> c_int {
    load(target)
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(module: usize) -> c_int {
    answer(|| with(|library| library.modules.remove(&module).ok_or(Code::INVALID_HANDLE)))
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleGetLoadingMode(mode: *mut c_int) -> c_int {
    const LAZY: c_int = 2;
    answer(|| Ok(put(mode, LAZY)?))
}

/// Any name is found: nothing of the module is read.
#[unsafe(no_mangle)]
extern "C" fn cuModuleGetFunction(target: *mut usize, module: usize, name: *const c_char) -> c_int {
    answer(|| {
        get_text(name, 4096)?;
        with(|library| {
            library.modules.get(&module).ok_or(Code::INVALID_HANDLE)?;
            let handle = library.new_handle();
            Ok(put(target, handle)?)
        })
    })
}

fn launch() -> c_int {
    answer(|| {
        with(|library| {
            library.current()?;
            let view = library.client.view()?;
            match view.ended {
                Some(_) => Err(Code::CONTEXT_IS_DESTROYED),
                None => Ok(library.client.launched()?),
            }
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchKernel(
    _function: usize,
    _grid_x: c_uint,
    _grid_y: c_uint,
    _grid_z: c_uint,
    _block_x: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    _shared_bytes: c_uint,
    _stream: usize,
    _parameters: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    launch()
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchKernelEx(
    _config: *const c_void,
    _function: usize,
    _parameters: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    launch()
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchCooperativeKernel(
    _function: usize,
    _grid_x: c_uint,
    _grid_y: c_uint,
    _grid_z: c_uint,
    _block_x: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    _shared_bytes: c_uint,
    _stream: usize,
    _parameters: *mut *mut c_void,
) -> c_int {
    launch()
}
