//! The `coloc` binary.

mod embedded;

fn main() -> std::process::ExitCode {
    embedded::offer();
    coloc::main()
}
