//! Modules and launches. A kernel does nothing but count, which tells the fleet that the process works.

use crate::answer::{Code, answer};
use crate::library::with;
use coloc_emu::abi::{get, get_text, put};
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

/// Launches a function over grids and blocks, of which none may be empty.
fn launch(function: usize, dimensions: [c_uint; 6]) -> c_int {
    answer(|| {
        with(|library| {
            library.current()?;
            if !library.is_handle(function) {
                return Err(Code::INVALID_HANDLE);
            }
            if dimensions.contains(&0) {
                return Err(Code::INVALID_VALUE);
            }
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
    function: usize,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    _shared_bytes: c_uint,
    _stream: usize,
    _parameters: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    launch(function, [grid_x, grid_y, grid_z, block_x, block_y, block_z])
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchKernelEx(
    config: *const c_void,
    function: usize,
    _parameters: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    // A configuration begins with the dimensions of the grid and of a block.
    match get(config.cast::<[c_uint; 6]>()) {
        Ok(dimensions) => launch(function, dimensions),
        Err(_) => Code::INVALID_VALUE.0,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchCooperativeKernel(
    function: usize,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    _shared_bytes: c_uint,
    _stream: usize,
    _parameters: *mut *mut c_void,
) -> c_int {
    launch(function, [grid_x, grid_y, grid_z, block_x, block_y, block_z])
}
