//! Dependencies that no source file of a crate names.

use crate::run::Failed;
use std::path::Path;

/// Whether every dependency of a crate is named in its sources.
pub(crate) fn check(name: &str) -> Result<(), Failed> {
    let folder = Path::new("crates").join(name);
    let unreadable = |_| Failed { step: format!("reading {}", folder.display()) };
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).map_err(unreadable)?;
    let mut sources = String::new();
    gather(&folder, &mut sources).map_err(unreadable)?;
    match dependencies(&manifest).find(|name| !sources.contains(&name.replace('-', "_"))) {
        Some(unused) => {
            Err(Failed { step: format!("{name} depends on {unused}, and no source file names it") })
        }
        None => Ok(()),
    }
}

/// What a manifest depends on, for its build and its tests too.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let mut listed = false;
    manifest.lines().filter_map(move |line| {
        if line.starts_with('[') {
            listed = line.trim_end_matches(']').ends_with("dependencies");
            return None;
        }
        let name = line.split(['.', '=']).next().map(str::trim)?;
        (listed && !name.is_empty() && !name.starts_with('#')).then_some(name)
    })
}

fn gather(folder: &Path, sources: &mut String) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            gather(&path, sources)?;
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            sources.push_str(&std::fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn dependencies_are_those_of_every_section() {
        let manifest = "[package]\nname = \"a\"\n[dependencies]\nserde.workspace = true\n# none\n\n\
                        [target.'cfg(unix)'.dependencies]\nrustix = \"1\"\n[lints]\nworkspace = true\n";
        let found: Vec<&str> = super::dependencies(manifest).collect();
        assert_eq!(found, ["serde", "rustix"]);
    }
}
