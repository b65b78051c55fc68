//! Exports every name of the driver API: names that no source file defines become answers of "not supported". A table
//! of all of them serves `cuGetProcAddress`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=symbols.txt");
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    // A handler of signals that was installed once must stay where it is.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    let names = fs::read_to_string("symbols.txt").expect("symbols.txt is part of the crate");
    let mut written = BTreeSet::new();
    for entry in fs::read_dir("src").expect("src").flatten() {
        let text = fs::read_to_string(entry.path()).expect("readable source");
        written.extend(text.split("fn cu").skip(1).filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
            rest.starts_with(|c: char| c.is_ascii_uppercase())
                .then(|| format!("cu{}", &rest[..end]))
        }));
    }
    let listed: BTreeSet<String> = names.lines().map(str::to_owned).collect();
    let (mut stubs, mut table) = (String::new(), String::new());
    for name in listed.difference(&written) {
        let answer = "{ crate::answer::unwritten() }";
        writeln!(stubs, "#[unsafe(no_mangle)]\nextern \"C\" fn {name}() -> i32 {answer}")
            .expect("text");
    }
    let all: Vec<&String> = listed.union(&written).collect();
    table += "unsafe extern \"C\" {\n";
    all.iter().for_each(|name| table += &format!("    fn {name}();\n"));
    table += "}\n/// Sorted by name.\npub(crate) static ENTRIES: &[(&str, unsafe extern \"C\" fn())] = &[\n";
    all.iter().for_each(|name| table += &format!("    (\"{name}\", {name}),\n"));
    table += "];\n";
    let output = env::var("OUT_DIR").expect("cargo sets it");
    let output = Path::new(&output);
    fs::write(output.join("stubs.rs"), stubs).expect("writable output folder");
    fs::write(output.join("table.rs"), table).expect("writable output folder");
}
