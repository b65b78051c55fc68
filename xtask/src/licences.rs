//! Licences of dependencies. `cargo deny` does it where it is installed; the list in `deny.toml` is checked
//! against `cargo metadata` everywhere.

use crate::fuzz;
use crate::run::{Failed, cargo, complaint, output, succeeds};

pub(crate) fn check() -> Result<(), Failed> {
    println!("\n=== licences");
    // Some versions of cargo deny need a folder in front.
    let manifests = ["./Cargo.toml".to_owned(), fuzz::manifest()];
    for manifest in &manifests {
        check_tree(manifest)?;
    }
    if !succeeds("cargo-deny", &["--version"]) {
        println!("cargo deny is not installed: licences checked by cargo tree alone");
        return Ok(());
    }
    for manifest in &manifests {
        let whose = ["deny", "--manifest-path", manifest, "--all-features"];
        cargo(&[&whose[..], &["check", "bans", "licenses", "sources"]].concat())?;
    }
    check_advisories()
}

/// Every licence below a manifest is in the list.
fn check_tree(manifest: &str) -> Result<(), Failed> {
    let allowed = allowed_licences()?;
    let listing = ["tree", "--workspace", "--edges", "normal,build", "--prefix", "none"];
    let format = ["--format", "{p}\t{l}", "--manifest-path", manifest];
    let listing = output(env!("CARGO"), &[&listing[..], &format[..]].concat())
        .ok_or_else(|| Failed { step: "cargo tree --format {l}".into() })?;
    for line in listing.lines().filter(|line| !line.is_empty()) {
        let (package, licence) = line.split_once('\t').unwrap_or((line, ""));
        // A mark of cargo tree's: it has listed what this one depends on before.
        let licence = licence.trim_end_matches(" (*)");
        if !is_allowed(licence, &allowed) {
            let step = format!("licence of {package}: {licence:?} is not in deny.toml");
            return Err(Failed { step });
        }
    }
    Ok(())
}

/// Known vulnerabilities fail the check; a database that cannot be had does not.
fn check_advisories() -> Result<(), Failed> {
    match complaint(env!("CARGO"), &["deny", "check", "advisories"]) {
        None => Ok(()),
        Some(text) if text.contains("failed to fetch advisory database") => {
            println!("SKIPPED: the database of advisories could not be fetched");
            Ok(())
        }
        Some(text) => {
            eprintln!("{text}");
            Err(Failed { step: "cargo deny check advisories".into() })
        }
    }
}

/// The `allow` list of `deny.toml`.
fn allowed_licences() -> Result<Vec<String>, Failed> {
    let missing = || Failed { step: "reading the allow list of deny.toml".into() };
    let text = std::fs::read_to_string("deny.toml").map_err(|_| missing())?;
    let list = text.split_once("allow = [").and_then(|(_, rest)| rest.split_once(']'));
    let (list, _) = list.ok_or_else(missing)?;
    let names = list.split(',').map(|name| name.trim().trim_matches('"').to_owned());
    Ok(names.filter(|name| !name.is_empty()).collect())
}

/// Whether a licence expression can be satisfied: every `AND` part has an `OR` choice that is allowed.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.replace(['(', ')'], "").replace('/', " OR ");
    expression
        .split(" AND ")
        .all(|part| part.split(" OR ").any(|name| allowed.iter().any(|ok| ok == name.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_need_one_allowed_choice_in_each_part() {
        let allowed = ["MIT", "Apache-2.0"].map(String::from);
        for good in ["MIT", "MIT OR GPL-3.0", "MIT/Apache-2.0", "(MIT OR GPL-3.0) AND Apache-2.0"] {
            assert!(is_allowed(good, &allowed), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0"] {
            assert!(!is_allowed(bad, &allowed), "{bad}");
        }
    }
}
