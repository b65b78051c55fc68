//! coloc
fn main() {}
