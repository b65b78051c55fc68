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
