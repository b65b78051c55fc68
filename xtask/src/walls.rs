//! The walls between crates: what must never depend on what.

use crate::run::{Failed, output};
use std::path::Path;

/// What a crate may not depend on.
struct Wall {
    of: &'static str,
    /// Not even by way of others.
    never: &'static [&'static str],
    /// Not by itself.
    never_directly: &'static [&'static str],
    why: &'static str,
}

/// Every crate has one, and the table of ARCHITECTURE.md a row.
const WALLS: [Wall; 13] = [
    Wall {
        of: "coloc-model",
        never: &[
            "tokio",
            "coloc-core",
            "coloc-physics",
            "coloc-sim",
            "coloc-gpu",
            "coloc-estimate",
            "coloc-emu",
        ],
        never_directly: &[],
        why: "nouns have no opinions",
    },
    Wall {
        of: "coloc-core",
        never: &["tokio", "coloc-physics", "coloc-sim", "rand", "chrono", "time", "mio", "libc"],
        never_directly: &[],
        why: "the scheduler sees no clock, no I/O, no randomness, and not the truth it is tested against",
    },
    Wall {
        of: "coloc-estimate",
        never: &["tokio", "coloc-physics", "coloc-core"],
        never_directly: &[],
        why: "an estimator sees no truth",
    },
    Wall {
        of: "coloc-physics",
        never: &["tokio", "coloc-core", "coloc-estimate", "coloc-sim", "coloc-gpu"],
        never_directly: &[],
        why: "the truth does not know who is looking",
    },
    Wall {
        of: "coloc-gpu",
        never: &["tokio", "coloc-core", "coloc-physics", "coloc-emu"],
        never_directly: &[],
        why: "real and emulated devices are one code path, and a daemon brings its own threads",
    },
    Wall {
        of: "coloc-sim",
        never: &["tokio", "axum", "rusqlite", "coloc-daemon"],
        never_directly: &[],
        why: "a simulation has no clock but its own, and no server",
    },
    Wall {
        of: "coloc-emu",
        never: EMULATED,
        never_directly: &[],
        why: "it is loaded into other people's programs: small, and without an opinion on scheduling",
    },
    Wall { of: "coloc-emu-nvml", never: EMULATED, never_directly: &[], why: "the same" },
    Wall { of: "coloc-emu-cuda", never: EMULATED, never_directly: &[], why: "the same" },
    Wall {
        of: "coloc-emu-tools",
        never: EMULATED,
        never_directly: &[],
        why: "the emulated driver has no opinion on scheduling",
    },
    Wall {
        of: "coloc-api",
        never: &[
            "axum",
            "hyper",
            "rusqlite",
            "tokio",
            "clap",
            "coloc-core",
            "coloc-estimate",
            "coloc-gpu",
            "coloc-physics",
            "coloc-sim",
            "coloc-daemon",
        ],
        never_directly: &[],
        why: "a remote client has neither a server nor a database nor a scheduler in it",
    },
    Wall {
        of: "coloc-daemon",
        never: &["clap", "coloc"],
        never_directly: &["coloc-physics"],
        why: "what is true of a task is not for those who schedule it, and the command line is above it",
    },
    Wall {
        of: "coloc",
        never: &[],
        never_directly: &["axum", "rusqlite"],
        why: "the daemon alone has a server and a database",
    },
];

const EMULATED: &[&str] = &["tokio", "coloc-core", "coloc-estimate", "coloc-sim"];

/// The only sources of the command line that name the daemon's crate: they run one, set one up or read the files that
/// one left. All others take what goes over the wire from coloc-api.
const NAMES_DAEMON: [&str; 22] = [
    "crates/coloc/src/args/accounts.rs",
    "crates/coloc/src/args/administration.rs",
    "crates/coloc/src/args/bounds.rs",
    "crates/coloc/src/args/log.rs",
    "crates/coloc/src/args/notify.rs",
    "crates/coloc/src/args/pool.rs",
    "crates/coloc/src/args/slurm.rs",
    "crates/coloc/src/config/mod.rs",
    "crates/coloc/src/error/mod.rs",
    "crates/coloc/src/error/usage.rs",
    "crates/coloc/src/live/experiment/partition.rs",
    "crates/coloc/src/live/experiment/run.rs",
    "crates/coloc/src/verbs/api.rs",
    "crates/coloc/src/verbs/daemon.rs",
    "crates/coloc/src/verbs/deliver.rs",
    "crates/coloc/src/verbs/doctor.rs",
    "crates/coloc/src/verbs/estimate/error.rs",
    "crates/coloc/src/verbs/estimate/ladder.rs",
    "crates/coloc/src/verbs/estimate/learn.rs",
    "crates/coloc/src/verbs/shim.rs",
    "crates/coloc/src/verbs/state.rs",
    "crates/coloc/src/verbs/whatif.rs",
];

/// A folder whose sources must not have some names, but for their tests.
struct SourceWall {
    folder: &'static str,
    never: &'static [&'static str],
    why: &'static str,
}

/// What dependencies alone do not keep apart.
const SOURCE_WALLS: [SourceWall; 2] = [
    SourceWall {
        folder: "crates/coloc-core/src",
        never: &[
            "std::fs",
            "std::net",
            "std::process",
            "std::thread",
            "Instant::now",
            "SystemTime",
        ],
        why: "the core is pure",
    },
    SourceWall {
        folder: "crates/coloc-daemon/src/owner",
        never: &[
            "executor::local",
            "coloc_gpu::driver",
            "coloc_gpu::mig",
            "coloc_gpu::mps",
            "process::Command",
            "pidfd",
            "std::fs",
            "std::thread",
            "Instant::now",
            "Moment::now",
            "SystemTime",
            ".elapsed()",
        ],
        why: "the owner asks an executor for what is done on machines, and its clock for the time",
    },
];

/// The only places with `unsafe`: where memory is shared with other programs, where C is called, and where C calls.
/// Everywhere else the compiler denies it.
const UNSAFE: [&str; 17] = [
    "crates/coloc-emu/src/abi.rs",
    "crates/coloc-emu/src/guard.rs",
    "crates/coloc-emu/src/mapping.rs",
    "crates/coloc-emu/src/sys.rs",
    "crates/coloc-emu-cuda/src/lib.rs",
    "crates/coloc-emu-nvml/src/lib.rs",
    "crates/coloc-emu-tools/src/signals.rs",
    "crates/coloc-emu-tools/tests/driver/main.rs",
    "crates/coloc-gpu/src/driver/nvml/gpm.rs",
    "crates/coloc-gpu/src/driver/nvml/lists.rs",
    "crates/coloc-gpu/src/driver/nvml/mig.rs",
    "crates/coloc-daemon/src/descriptors.rs",
    "crates/coloc-daemon/src/heap.rs",
    "crates/coloc-daemon/src/executor/local/shim/beside.rs",
    "crates/coloc-daemon/src/executor/local/shim/child.rs",
    "crates/coloc/src/embedded.rs",
    "crates/coloc/src/local_time.rs",
];

/// No other file lifts the ban.
fn check_unsafe(folder: &Path) -> Result<(), Failed> {
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
            if lifts && !UNSAFE.iter().any(|known| path == Path::new(known)) {
                let step = format!("wall: {} allows unsafe code", path.display());
                return Err(Failed { step });
            }
        }
    }
    Ok(())
}

pub(crate) fn check() -> Result<(), Failed> {
    println!("\n=== walls between crates");
    check_all_have_one()?;
    for wall in &WALLS {
        check_wall(wall)?;
        crate::unused::check(wall.of)?;
    }
    check_unsafe(Path::new("crates"))?;
    for wall in &SOURCE_WALLS {
        check_sources(Path::new(wall.folder), &|path, text| {
            if is_test(path) {
                return None;
            }
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
            let name = wall.never.iter().find(|name| code.contains(**name))?;
            Some(format!("{} uses {name}, but {}", path.display(), wall.why))
        })?;
    }
    check_sources(Path::new("crates/coloc/src"), &|path, text| {
        let known = NAMES_DAEMON.iter().any(|known| path == Path::new(known));
        let what = match text.contains("coloc_daemon") {
            true if !known => "names coloc_daemon: what goes over the wire is in coloc-api",
            false if known => "does not name coloc_daemon any more: take it off the list",
            _ => return None,
        };
        Some(format!("{} {what}", path.display()))
    })
}

/// No crate is without a wall, no wall without a crate, and ARCHITECTURE.md tells of each.
fn check_all_have_one() -> Result<(), Failed> {
    let unreadable = |_| Failed { step: "reading crates and ARCHITECTURE.md".to_owned() };
    let folders = std::fs::read_dir("crates").map_err(unreadable)?.flatten();
    let mut crates: Vec<String> =
        folders.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect();
    let mut walled: Vec<String> = WALLS.iter().map(|wall| wall.of.to_owned()).collect();
    crates.sort();
    walled.sort();
    if crates != walled {
        let step = format!("wall: the crates are {crates:?}, and there are walls of {walled:?}");
        return Err(Failed { step });
    }
    let told = std::fs::read_to_string("ARCHITECTURE.md").map_err(unreadable)?;
    let rows: Vec<&str> = told.lines().filter(|line| line.starts_with("| coloc")).collect();
    let named = |name: &str| {
        let first = |row: &&str| row.split('|').nth(1).unwrap_or_default().to_owned();
        rows.iter().map(first).any(|cell| cell.split(',').any(|word| word.trim() == name))
    };
    match WALLS.iter().find(|wall| !named(wall.of)) {
        Some(wall) => {
            Err(Failed { step: format!("wall: ARCHITECTURE.md has no row of {}", wall.of) })
        }
        None => Ok(()),
    }
}

fn check_wall(wall: &Wall) -> Result<(), Failed> {
    let Wall { of, never, never_directly, why } = wall;
    for (depth, forbidden) in [("1", never_directly), ("999", never)] {
        let tree =
            ["tree", "--package", of, "--edges", "normal", "--prefix", "none", "--depth", depth];
        let tree = output(env!("CARGO"), &tree)
            .ok_or_else(|| Failed { step: format!("cargo tree --package {of}") })?;
        let names = tree.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        for dependency in names {
            if forbidden.contains(&dependency) {
                let step = format!("wall: {of} depends on {dependency}, but {why}");
                return Err(Failed { step });
            }
        }
    }
    Ok(())
}

/// A source that only tests have.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "kit") || path.ends_with("tests.rs")
}

/// Looks at every source below a folder; the first that is wrong fails.
fn check_sources(
    folder: &Path,
    wrong: &dyn Fn(&Path, &str) -> Option<String>,
) -> Result<(), Failed> {
    let unreadable = |_| Failed { step: format!("reading {}", folder.display()) };
    for entry in std::fs::read_dir(folder).map_err(unreadable)?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            check_sources(&path, wrong)?;
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(unreadable)?;
        if let Some(what) = wrong(&path, &text) {
            return Err(Failed { step: format!("wall: {what}") });
        }
    }
    Ok(())
}
