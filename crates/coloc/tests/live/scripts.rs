//! Scripts: what runs is what was submitted.

use super::home::{Home, coloc, text};
use std::io::Write as _;
use std::process::{Output, Stdio};

/// Runs the program with words on its standard input, by its own name or another.
fn with_input(home: &Home, name: &str, arguments: &[&str], input: &[u8]) -> Output {
    let link = home.path().join(name);
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_coloc"), &link).expect("a link");
    }
    let mut program = std::process::Command::new(link);
    program.args(arguments).env("COLOC_CONFIG", "/dev/null").env("COLOC_SOCKET", home.socket());
    program.current_dir(home.path()).stdin(Stdio::piped());
    let program = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut program = program.expect("it starts");
    let _ = program.stdin.take().expect("a pipe").write_all(input);
    program.wait_with_output().expect("it ends")
}

#[test]
fn a_script_that_is_edited_later_runs_as_it_was() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let file = home.path().join("my job.sh");
    let said = "#!/bin/sh -e\n#SBATCH -o out.txt\necho old $1 $COLOC_SCRIPT; cat \"$0\"\n";
    std::fs::write(&file, said).expect("a script");
    let submit = |flags: &[&str]| {
        let typed = ["submit", "--hold"].iter().chain(flags).chain(&["my job.sh", "a b"]);
        let mut program = coloc();
        program.args(typed).env("COLOC_SOCKET", home.socket()).current_dir(home.path());
        assert!(program.status().expect("it runs").success());
    };
    submit(&[]);
    submit(&["--in-place", "-o", "there.txt"]);
    std::fs::write(&file, "#!/bin/sh\necho new\n").expect("a script");
    home.run(&["release", "1-2"]);
    home.wait_for_state(1, "completed");
    home.wait_for_state(2, "completed");
    let read = |name: &str| std::fs::read_to_string(home.path().join(name)).expect("its output");
    let place = file.display();
    assert_eq!(read("out.txt"), format!("old a b {place}\n{said}"));
    assert_eq!(read("there.txt"), "new\n");
    let task = home.show(1);
    assert_eq!(
        (&task["name"], &task["command"][0]),
        (&"my job.sh".into(), &place.to_string().into())
    );
}

#[test]
fn scripts_come_from_standard_input() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let script = b"#!/bin/sh\n#SBATCH --job-name=piped\necho from \xff $1\n";
    let told = with_input(&home, "sbatch", &[], script);
    assert_eq!(text(&told.stdout), "Submitted batch job 1\n", "{}", text(&told.stderr));
    let told = with_input(&home, "coloc", &["submit", "-J", "typed", "-", "x"], script);
    assert_eq!(text(&told.stdout), "Submitted task 2\n", "{}", text(&told.stderr));
    home.wait_for_state(2, "completed");
    assert_eq!((&home.show(1)["name"], &home.show(2)["name"]), (&"piped".into(), &"typed".into()));
    let log = home.try_run(&["logs", "2"]).stdout;
    assert_eq!(log, b"from \xff x\n");
    for wrong in [&b""[..], b"echo no script\n", b"#!\n", b"\x7fELF"] {
        let told = with_input(&home, "sbatch", &[], wrong);
        assert_eq!(told.status.code(), Some(2));
        assert!(text(&told.stderr).contains("this is no script"), "{}", text(&told.stderr));
    }
    let nothing = home.try_run(&["submit"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(text(&nothing.stderr).contains("no command was given"));
}
