//! Hooks: programs, webhooks and mail that are told of tasks.

use super::home::Home;
use super::users::{shared_home, submit_as_nobody};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A program that keeps what it is told beside itself: its arguments, its user, its environment, its input.
fn recorder(folder: &Path, name: &str) -> PathBuf {
    let program = folder.join(name);
    let told = folder.join(format!("{name}.told"));
    let told = told.display();
    let text = format!(
        "#!/bin/sh\n{{ echo \"args=$* uid=$(id -u) groups=$(id -G)\"; env; cat; echo; }} >> {told}.$$\nmv {told}.$$ {told}\n"
    );
    std::fs::write(&program, text).expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("changed");
    program
}

fn told(program: &Path) -> Option<String> {
    std::fs::read_to_string(program.with_extension("told")).ok()
}

/// Takes one request and answers it; says what was asked.
fn answer(mut stream: TcpStream, status: &str) -> (String, Value) {
    let mut asked = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).expect("a request");
        asked.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&asked).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            stream.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).expect("sent");
            return (head.to_owned(), body);
        }
        assert!(count > 0, "half a request: {text}");
    }
}

#[test]
fn programs_webhooks_and_mail_are_told_how_a_task_ended() {
    let place = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o777)).expect("open");
    let own = recorder(place.path(), "own");
    // What runs with the daemon's rights, no other user can change.
    let closed = tempfile::tempdir().expect("a folder");
    let of_admins = recorder(closed.path(), "admins");
    let sendmail = recorder(closed.path(), "sendmail");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let hook = format!("fail:{}", of_admins.display());
    let home = Home::new(&[
        "--emulate",
        "1xA100-40GB",
        "--hook",
        &hook,
        "--webhook-allow",
        &address,
        "--sendmail",
        sendmail.to_str().expect("text"),
    ]);
    let refused = home.try_run(&["submit", "--notify", "end:http://127.0.0.1:1/x", "--", "true"]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("users' webhooks may go to"), "{why}");
    let url = format!("fail:http://{address}/told?by=coloc");
    let program = format!("end:{}", own.display());
    let id = home.submit(&[
        "--notify",
        &url,
        "--notify",
        &program,
        "--mail-type",
        "END,FAIL",
        "--mail-user",
        "ann@example.org",
        "-J",
        "night run",
        "--",
        "sh",
        "-c",
        "exit 3",
    ]);
    let (stream, _) = listener.accept().expect("it calls");
    let (head, body) = answer(stream, "204 No Content");
    assert!(head.starts_with("POST /told?by=coloc HTTP/1.1\r\n"), "{head}");
    assert_eq!((&body["event"], &body["task"]["id"]), (&"fail".into(), &id.into()));
    assert_eq!((&body["task"]["exit_code"], &body["schema"]), (&3.into(), &1.into()));
    let all = [&of_admins, &own, &sendmail];
    home.wait_for("all are told", |_| all.iter().all(|program| told(program).is_some()));
    let mail = told(&sendmail).expect("told");
    assert!(mail.contains("args=-i -- ann@example.org"), "{mail}");
    assert!(mail.contains(&format!("Subject: coloc: task {id} (night run) failed")), "{mail}");
    let said = told(&own).expect("told");
    assert!(said.contains("COLOC_NOTICE_EVENT=end") && !said.contains("COLOC_SOCKET"), "{said}");
    home.wait_for("the story", |home| home.story(id).matches(" was told of its ").count() == 4);
}

#[test]
fn a_notice_outlives_the_daemon() {
    let place = tempfile::tempdir().expect("a folder");
    let program = recorder(place.path(), "late");
    let hidden = place.path().join("hidden");
    std::fs::rename(&program, &hidden).expect("moved");
    // A program that fails for now: what is tried again is not lost in between.
    let failing = "#!/bin/sh\nexit 1\n";
    std::fs::write(&program, failing).expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("changed");
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let id = home.submit(&["--notify", &format!("end:{}", program.display()), "--", "true"]);
    home.wait_for_state(id, "completed");
    home.kill();
    std::fs::rename(&hidden, &program).expect("moved");
    home.boot();
    home.wait_for("it is told", |_| told(&program).is_some());
    home.wait_for("it is noted", |home| home.story(id).contains("was told of its end"));
    let said = told(&program).expect("told");
    assert!(said.contains(&format!("COLOC_TASK_ID={id}")), "{said}");
}

#[test]
fn a_users_hook_runs_as_the_user() {
    let Some(home) = shared_home(&["--emulate", "1xA100-40GB"]) else { return };
    let place = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o777)).expect("open");
    let program = recorder(place.path(), "own");
    let id =
        submit_as_nobody(&home, &["--notify", &format!("end:{}", program.display()), "--", "true"]);
    home.wait_for("it is told", |_| told(&program).is_some());
    let said = told(&program).expect("told");
    assert!(said.contains("uid=65534 groups=65534"), "{said}");
    home.wait_for("it is noted", |home| home.story(id).contains("was told of its end"));
    // A program that only root may run is not run.
    let secret = recorder(place.path(), "secret");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o700)).expect("changed");
    let id =
        submit_as_nobody(&home, &["--notify", &format!("end:{}", secret.display()), "--", "true"]);
    home.wait_for("it is given up", |home| home.story(id).contains("could not be told"));
    assert!(home.story(id).contains("ermission denied"), "{}", home.story(id));
    assert_eq!(told(&secret), None);
}
