//! The walls between crates: what must never depend on what.

use crate::run::{Failed, output};

/// A crate and what may not be below it.
const WALLS: [(&str, &[&str], &str); 4] = [
    (
        "coloc-core",
        &["tokio", "coloc-physics", "coloc-sim", "rand", "chrono", "time", "mio", "libc"],
        "the scheduler sees no clock, no I/O, no randomness, and not the truth it is tested against",
    ),
    ("coloc-estimate", &["tokio", "coloc-physics", "coloc-core"], "an estimator sees no truth"),
    (
        "coloc-emu-tools",
        &["tokio", "coloc-core", "coloc-estimate", "coloc-sim"],
        "the emulated driver has no opinion on scheduling",
    ),
    (
        "coloc-gpu",
        &["tokio", "coloc-core", "coloc-physics", "coloc-emu"],
        "real and emulated devices are one code path, and a daemon brings its own threads",
    ),
];

/// Names in source text that would let the core reach around its dependencies.
const FORBIDDEN_IN_CORE: [&str; 6] =
    ["std::fs", "std::net", "std::process", "std::thread", "Instant::now", "SystemTime"];

/// The only places with `unsafe`: where memory is shared with other programs, where C is called, and where C calls.
/// Everywhere else the compiler denies it.
const UNSAFE: [&str; 13] = [
    "crates/coloc-emu/src/abi.rs",
    "crates/coloc-emu/src/mapping.rs",
    "crates/coloc-emu/src/sys.rs",
    "crates/coloc-emu-cuda/src/lib.rs",
    "crates/coloc-emu-nvml/src/lib.rs",
    "crates/coloc-emu-tools/src/signals.rs",
    "crates/coloc-emu-tools/tests/driver/main.rs",
    "crates/coloc-gpu/src/driver/nvml/gpm.rs",
    "crates/coloc-gpu/src/driver/nvml/lists.rs",
    "crates/coloc-gpu/src/driver/nvml/mig.rs",
    "crates/coloc-daemon/src/shim/child.rs",
    "crates/coloc/src/embedded.rs",
    "crates/coloc/src/local_time.rs",
];

/// Nobody lifts the ban elsewhere.
fn check_unsafe(folder: &std::path::Path) -> Result<(), Failed> {
    let unreadable = |_| Failed { step: format!("reading {}", folder.display()) };
    for entry in std::fs::read_dir(folder).map_err(unreadable)?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            check_unsafe(&path)?;
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = std::fs::read_to_string(&path).map_err(unreadable)?;
            let lifts = ["allow(", "expect(", "warn("].iter().any(|word| {
                text.split(word).skip(1).any(|rest| {
                    rest.split(')').next().is_some_and(|lints| lints.contains("unsafe_code"))
                })
            });
            if lifts && !UNSAFE.iter().any(|known| path == std::path::Path::new(known)) {
                let step = format!("wall: {} allows unsafe code", path.display());
                return Err(Failed { step });
            }
        }
    }
    Ok(())
}

pub(crate) fn check() -> Result<(), Failed> {
    println!("\n=== walls between crates");
    for (name, forbidden, why) in WALLS {
        if !std::path::Path::new("crates").join(name).exists() {
            continue;
        }
        let tree = ["tree", "--package", name, "--edges", "normal", "--prefix", "none"];
        let tree = output(env!("CARGO"), &tree)
            .ok_or_else(|| Failed { step: format!("cargo tree --package {name}") })?;
        let names = tree.lines().filter_map(|line| line.split_whitespace().next());
        for dependency in names {
            if forbidden.contains(&dependency) {
                let step = format!("wall: {name} depends on {dependency}, but {why}");
                return Err(Failed { step });
            }
        }
    }
    check_unsafe(std::path::Path::new("crates"))?;
    check_sources(std::path::Path::new("crates/coloc-core/src"))
}

fn check_sources(folder: &std::path::Path) -> Result<(), Failed> {
    let unreadable = |_| Failed { step: format!("reading {}", folder.display()) };
    for entry in std::fs::read_dir(folder).map_err(unreadable)?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            check_sources(&path)?;
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(unreadable)?;
        if let Some(name) = FORBIDDEN_IN_CORE.iter().find(|name| text.contains(**name)) {
            let step = format!("wall: {} uses {name}, but the core is pure", path.display());
            return Err(Failed { step });
        }
    }
    Ok(())
}
