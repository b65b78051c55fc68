//! Exports every NVML name: names that no source file defines become answers of "not supported".

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=symbols.txt");
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnvidia-ml.so.1");
    // A handler of signals that was installed once must stay where it is.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    let names = fs::read_to_string("symbols.txt").expect("symbols.txt is part of the crate");
    let mut written = BTreeSet::new();
    for entry in fs::read_dir("src").expect("src").flatten() {
        let text = fs::read_to_string(entry.path()).expect("readable source");
        written.extend(text.split("fn nvml").skip(1).map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            format!("nvml{}", &rest[..end.unwrap_or(rest.len())])
        }));
    }
    let stubs: String = names
        .lines()
        .filter(|name| !name.is_empty() && !written.contains(*name))
        .map(|name| {
            format!(
                "#[unsafe(no_mangle)]\nextern \"C\" fn {name}() -> u32 {{ crate::answer::unwritten() }}\n"
            )
        })
        .collect();
    let output = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&output).join("stubs.rs"), stubs).expect("writable output folder");
}
