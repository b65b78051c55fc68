//! Published data that lies beside the project, where it does.

use std::io::Write;
use std::path::{Path, PathBuf};

/// A file of the shared data; without it the test says loudly that it was skipped.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if file.exists() {
        return Some(file);
    }
    // Past the test runner's capture, which would swallow it in a test that passes.
    writeln!(std::io::stderr(), "SKIPPED: {} is not there", file.display()).expect("it is heard");
    None
}
