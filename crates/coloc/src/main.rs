//! coloc

// The verbs that write these pages are not wired yet.
#[allow(dead_code, unused_imports)]
mod report;

fn main() {}
