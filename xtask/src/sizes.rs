//! A file past four hundred lines hides several. Functions are clippy's matter (`clippy.toml`).

use crate::run::Failed;
use std::path::Path;

/// The most lines of a source file.
const MOST_LINES: usize = 400;

/// Which files are sources.
const KINDS: [&str; 5] = ["rs", "ts", "tsx", "mjs", "css"];
/// Made by a program, from the daemon's own types.
const GENERATED: &str = "web/src/api/types.ts";

pub(crate) fn check() -> Result<(), Failed> {
    println!("\n=== sizes of files");
    ["crates", "xtask", "web/src", "web/test", "web/scripts"]
        .iter()
        .try_for_each(|folder| check_folder(Path::new(folder)))
}

fn check_folder(folder: &Path) -> Result<(), Failed> {
    let unreadable = |_| Failed { step: format!("reading {}", folder.display()) };
    for entry in std::fs::read_dir(folder).map_err(unreadable)?.flatten() {
        let path = entry.path();
        if path == Path::new(GENERATED) {
            continue;
        }
        if path.is_dir() {
            check_folder(&path)?;
        } else if path.extension().is_some_and(|kind| KINDS.iter().any(|k| kind == *k)) {
            let lines = std::fs::read_to_string(&path).map_err(unreadable)?.lines().count();
            if lines > MOST_LINES {
                let step = format!("{} has {lines} lines, at most {MOST_LINES}", path.display());
                return Err(Failed { step });
            }
        }
    }
    Ok(())
}
