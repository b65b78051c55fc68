//! Lists the files of the built page (`web-dist/`), so that they can be embedded. Node is not needed: the built page is in the repository.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says it"));
    let dist = root.join("web-dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    collect(&dist, &dist, &mut files);
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let path = dist.join(file);
        writeln!(list, "    ({file:?}, include_bytes!({:?})),", path.display().to_string())
            .expect("a string takes all");
    }
    list.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says it"));
    std::fs::write(out.join("page_files.rs"), list).expect("the output directory can be written");
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<String>) {
    let entries = std::fs::read_dir(folder).expect("the built page is in web-dist/");
    for entry in entries {
        let path = entry.expect("the folder can be read").path();
        match path.is_dir() {
            true => collect(root, &path, files),
            false => {
                let name = path.strip_prefix(root).expect("it is below it");
                files.push(name.to_str().expect("names are text").to_owned());
            }
        }
    }
}
