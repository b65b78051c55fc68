//! Every exported function with null and garbage arguments.

use crate::support::{AnyFunction, Cuda, Dice, invoke, library_path, nvml, on_fleet};
use coloc_emu::Options;
use libloading::{Library, Symbol};
use std::time::{Duration, Instant};

/// How long to go on; `cargo xtask test` asks for more.
fn duration() -> Duration {
    let seconds = std::env::var("COLOC_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(2))
}

const PAGE: usize = 4096;

/// Pages that may be written to, with one after them that may not.
fn scratch() -> usize {
    // SAFETY: a new mapping, and protection of its last page.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let start = libc::mmap(std::ptr::null_mut(), 17 * PAGE, access, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        assert_eq!(libc::mprotect(start.wrapping_add(16 * PAGE), PAGE, libc::PROT_NONE), 0);
        start as usize
    }
}

fn names(list: &str) -> Vec<&str> {
    list.lines().filter(|name| !name.is_empty()).collect()
}

fn argument(dice: &mut Dice, scratch: usize) -> usize {
    match dice.roll(12) {
        0..=2 => 0,
        3 => 1,
        4 => dice.roll(64) as usize,
        5 => 0xdead_beef,
        6 => usize::MAX,
        7 => scratch + 16 * PAGE - 4,
        8 => scratch + 1,
        // Something like a handle.
        9 => (0xC01D + dice.roll(8) as usize) << 32 | dice.roll(1 << 20) as usize,
        10 => 1 << 63,
        _ => scratch + dice.roll(PAGE as u64) as usize / 8 * 8,
    }
}

fn assault(library: &Library, names: &[&str], seed: u64) {
    let (mut dice, scratch) = (Dice(seed), scratch());
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < 3 || start.elapsed() < duration() {
        for name in names {
            let arguments = match rounds {
                0 => [0; 12],
                _ => std::array::from_fn(|_| argument(&mut dice, scratch)),
            };
            // SAFETY: the functions take numbers and addresses, and survive bad ones: that is the test.
            unsafe {
                let function: Symbol<'_, AnyFunction> = library.get(name.as_bytes()).expect(name);
                invoke(*function, arguments);
            }
        }
        rounds += 1;
    }
    println!("{} functions, {rounds} rounds", names.len());
}

#[test]
fn nvml_survives_garbage() {
    on_fleet("hostile::nvml_survives_garbage", "2xH100-80GB", Options::default(), |emulator| {
        let names = names(include_str!("../../../coloc-emu-nvml/symbols.txt"));
        assert_eq!(names.len(), 428);
        let path = library_path("libcoloc_emu_nvml.so");
        // SAFETY: our own library, which runs no code when loaded.
        let library = unsafe { Library::new(path) }.expect("loads");
        // Without initialisation first: no function answers.
        let all_but_init: Vec<&str> =
            names.iter().copied().filter(|name| !name.starts_with("nvmlInit")).collect();
        assault(&library, &all_but_init[..40], 1);
        let initialised = nvml();
        let lasting: Vec<&str> =
            all_but_init.into_iter().filter(|name| *name != "nvmlShutdown").collect();
        assault(&library, &lasting, 2);
        drop(initialised);
        // And with all of them, the ones that begin and end included.
        assault(&library, &names, 5);
        emulator.lock().expect("no lock is left").sanity_check().expect("sane");
    });
}

#[test]
fn cuda_survives_garbage() {
    on_fleet("hostile::cuda_survives_garbage", "2xA100-40GB", Options::default(), |emulator| {
        let names = names(include_str!("../../../coloc-emu-cuda/symbols.txt"));
        // SAFETY: our own library, which runs no code when loaded.
        let library = unsafe { Library::new(library_path("libcoloc_emu_cuda.so")) }.expect("loads");
        assault(&library, &names[..40], 3);
        let cuda = Cuda::with_context();
        assault(&library, &names, 4);
        drop(cuda);
        emulator.lock().expect("no lock is left").sanity_check().expect("sane");
    });
}

#[test]
fn nothing_is_launched_without_a_function() {
    let test = "hostile::nothing_is_launched_without_a_function";
    on_fleet(test, "1xA100-40GB", Options::default(), |_| {
        let cuda = Cuda::with_context();
        let (mut module, mut function) = (0usize, 0usize);
        assert_eq!(cuda.call("cuModuleLoadData", [&raw mut module as usize, 0]), 0);
        let into = &raw mut function as usize;
        assert_eq!(cuda.call("cuModuleGetFunction", [into, module, c"f".as_ptr() as usize]), 0);
        let launch = |f: usize, x: usize| cuda.call("cuLaunchKernel", [f, x, 1, 1, 32, 1, 1, 0, 0]);
        assert_eq!(launch(function, 1), 0);
        assert_eq!((launch(0, 1), launch(0xdead, 1)), (400, 400), "no such handle");
        assert_eq!(launch(function, 0), 1, "an empty grid");
        assert_eq!(cuda.call("cuLaunchKernelEx", [0, function]), 1, "no configuration");
    });
}

#[test]
fn a_forked_child_cannot_use_what_its_parent_began() {
    let test = "hostile::a_forked_child_cannot_use_what_its_parent_began";
    on_fleet(test, "1xA100-40GB", Options::default(), |_| {
        let cuda = Cuda::with_context();
        // SAFETY: the child calls two functions of ours that take no lock which another thread could hold, and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let answers = (cuda.call("cuInit", [0]), cuda.call("cuCtxSynchronize", []));
            // SAFETY: ends the child at once, without the parent's tidying up.
            unsafe { libc::_exit(if answers == (3, 3) { 0 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: waits for the child that was just made.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), 0, "both say that CUDA is not initialised");
        assert!(cuda.allocate(1 << 20).is_ok(), "the parent goes on");
    });
}

/// The functions that a library exports, from its table of dynamic symbols.
fn exported(library: &std::path::Path) -> Vec<String> {
    let file = std::fs::read(library).expect("a library");
    let number = |at: usize, bytes: usize| {
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(&file[at..at + bytes]);
        u64::from_le_bytes(value) as usize
    };
    assert_eq!(&file[..5], b"\x7fELF\x02", "a 64-bit library");
    let (table, size, count) = (number(40, 8), number(58, 2), number(60, 2));
    let section = |at: usize| table + at * size;
    let dynamic = (0..count).map(section).find(|&at| number(at + 4, 4) == 11).expect("symbols");
    let strings = number(section(number(dynamic + 40, 4)) + 24, 8);
    let (start, length) = (number(dynamic + 24, 8), number(dynamic + 32, 8));
    let mut names = Vec::new();
    for symbol in (start..start + length).step_by(24) {
        let (info, section) = (file[symbol + 4], number(symbol + 6, 2));
        // Functions that are defined here and seen by others.
        if info & 0xf == 2 && matches!(info >> 4, 1 | 2) && section != 0 {
            let name = &file[strings + number(symbol, 4)..];
            let end = name.iter().position(|&byte| byte == 0).expect("names end");
            names.push(String::from_utf8_lossy(&name[..end]).into_owned());
        }
    }
    names.sort_unstable();
    names
}

#[test]
fn what_is_assaulted_is_all_that_is_exported() {
    for (library, list, prefix) in [
        ("libcoloc_emu_nvml.so", include_str!("../../../coloc-emu-nvml/symbols.txt"), "nvml"),
        ("libcoloc_emu_cuda.so", include_str!("../../../coloc-emu-cuda/symbols.txt"), "cu"),
    ] {
        let mut listed: Vec<String> = names(list).into_iter().map(str::to_owned).collect();
        listed.sort_unstable();
        let exported = exported(&library_path(library));
        assert!(exported.len() > 400, "{library} exports {}", exported.len());
        assert!(exported.iter().all(|name| name.starts_with(prefix)), "nothing else gets out");
        assert_eq!(exported, listed, "{library}");
    }
}
