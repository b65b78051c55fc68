//! Puts the emulated driver's libraries into a release binary, so that one that was installed alone has them too.
//!
//! They are built as dependencies, and are there when the binary is linked, though not before: so it is the linker that takes
//! them in, and not the compiler. Debug builds find them in the build tree.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

const LIBRARIES: [&str; 2] = ["libcoloc_emu_nvml.so", "libcoloc_emu_cuda.so"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(embedded_driver)");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|found| found == value);
    if !is("PROFILE", "release") || !is("CARGO_CFG_TARGET_OS", "linux") {
        return;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // OUT_DIR is PROFILE/build/PACKAGE/out, and dependencies are in PROFILE/deps.
    let profile = out.ancestors().nth(3).expect("cargo's layout");
    let mut code = String::new();
    println!("cargo:rustc-link-arg-bins=-Wl,--format=binary");
    for (at, name) in LIBRARIES.into_iter().enumerate() {
        let file = profile.join("deps").join(name);
        println!("cargo:rustc-link-arg-bins=-Wl,{}", file.display());
        let symbol = symbol(&file);
        // Writing to a string cannot fail.
        let _ = write!(
            code,
            "unsafe extern \"C\" {{\n    #[link_name = \"{symbol}_start\"]\n    static START_{at}: u8;\n    \
             #[link_name = \"{symbol}_end\"]\n    static END_{at}: u8;\n}}\n"
        );
    }
    println!("cargo:rustc-link-arg-bins=-Wl,--format=default");
    println!("cargo:rustc-cfg=embedded_driver");
    fs::write(out.join("embedded.rs"), code).expect("OUT_DIR can be written");
}

/// What linkers call a file that they take in as it is: its path, with all but letters and digits replaced.
fn symbol(file: &Path) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let path = file.to_str().expect("a path that can be passed to a linker");
    format!("_binary_{}", path.chars().map(plain).collect::<String>())
}
