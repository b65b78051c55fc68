//! Signing in to the dashboard, and what keeps other pages and other users out.

use super::home::{Home, text};
use super::http::{Reply, ask};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// The port of a daemon's page, from the link that `coloc web` prints, and the code in it.
fn link(home: &Home, flags: &[&str]) -> (u16, String) {
    let said = home.run(&[&["web", "--print"], flags].concat());
    let rest = said.trim().strip_prefix("http://localhost:").expect("a link");
    let (port, code) = rest.split_once("/#c=").expect("a code in its fragment");
    (port.parse().expect("a port"), code.to_owned())
}

/// Asks as a browser would; headers end with `\r\n`.
fn browse(port: u16, line: &str, headers: &str, body: &str) -> Reply {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a place");
    let host = if headers.contains("host:") { "" } else { "host: localhost\r\n" };
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\n{host}connection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    Reply::read(stream)
}

fn sign_in(home: &Home, flags: &[&str]) -> (u16, String) {
    let (port, code) = link(home, flags);
    let signed = browse(port, "POST /v1/web/session", "", &json!({ "code": code }).to_string());
    assert_eq!(signed.status, 200, "{}", signed.json());
    (port, format!("authorization: Bearer {}\r\n", signed.json()["token"].as_str().expect("one")))
}

#[test]
fn one_signs_in_once_by_a_code_and_a_reader_cannot_act() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--web", "127.0.0.1:0"]);
    let task = home.submit(&["--hold", "--", "true"]);
    let (port, code) = link(&home, &[]);
    let body = json!({ "code": code }).to_string();
    let signed = browse(port, "POST /v1/web/session", "", &body).json();
    assert_eq!(signed["scope"], "read", "{signed}");
    let again = browse(port, "POST /v1/web/session", "", &body);
    assert_eq!((again.status, &again.json()["code"]), (401, &json!("no_code")), "once");
    let token = format!("authorization: Bearer {}\r\n", signed["token"].as_str().expect("one"));
    assert_eq!(browse(port, "GET /v1/status", "", "").status, 401, "nothing without a token");
    let status = browse(port, "GET /v1/status", &token, "").json();
    assert_eq!((&status["scope"], &status["emulated"]), (&json!("read"), &json!(true)));
    let change = json!({ "ids": [task], "change": "cancel" }).to_string();
    let refused = browse(port, "POST /v1/tasks/change", &token, &change);
    assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("read_only")));
    // A token makes no codes, and so no other tokens.
    let (port, token) = sign_in(&home, &["--act"]);
    let child = browse(port, "POST /v1/web/code", &token, "{}");
    assert_eq!((child.status, &child.json()["code"]), (403, &json!("not_by_token")));
    let done = browse(port, "POST /v1/tasks/change", &token, &change).json();
    assert_eq!(done["done"], json!([task]), "{done}");
    let listed = home.run(&["token", "list"]);
    assert!(listed.contains("web") && listed.contains("read"), "{listed}");
}

#[test]
fn other_hosts_and_other_pages_are_refused_and_the_page_is_strict() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--web", "127.0.0.1:0"]);
    let (port, token) = sign_in(&home, &["--act"]);
    let rebound = format!("host: evil.example\r\n{token}");
    for line in ["GET /v1/status", "GET /", "POST /v1/web/session"] {
        let refused = browse(port, line, &rebound, "{}");
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (421, &json!("wrong_host")),
            "{line}"
        );
    }
    for other in ["origin: http://evil.example\r\n", "sec-fetch-site: cross-site\r\n"] {
        let refused = browse(port, "POST /v1/drain", &format!("{token}{other}"), "true");
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (403, &json!("cross_site")),
            "{other}"
        );
    }
    assert_eq!(ask(&home, "GET /v1/status", "", b"").json()["draining"], false, "nothing was done");
    let page = browse(port, "GET /", "accept-encoding: gzip\r\n", "");
    assert_eq!(page.status, 200, "{}", page.head);
    for said in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "require-trusted-types-for 'script'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-opener-policy: same-origin",
        "cross-origin-resource-policy: same-origin",
        "content-encoding: gzip",
    ] {
        assert!(page.head.contains(said), "{said} in {}", page.head);
    }
    assert!(!page.head.contains("set-cookie"), "no credential that a browser adds by itself");
    let plain = browse(port, "GET /index.html", "", "");
    assert!(text(&plain.body).contains("<script"), "it is there for clients without gzip too");
    let no_page = home.try_run(&["daemon", "--web", "0.0.0.0:7451"]);
    assert!(text(&no_page.stderr).contains("this machine only"), "{}", text(&no_page.stderr));
}

#[test]
fn a_page_that_comes_back_hears_what_it_missed() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--web", "127.0.0.1:0"]);
    let (port, token) = sign_in(&home, &[]);
    let listen = |last: &str, until: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a place");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("it can");
        let head = format!("GET /v1/events HTTP/1.1\r\nhost: localhost\r\n{token}{last}\r\n");
        stream.write_all(head.as_bytes()).expect("it listens");
        let mut said = String::new();
        let mut piece = [0; 4096];
        while !said.contains(until) {
            let length = stream.read(&mut piece).expect("an event");
            assert!(length > 0 && !said.contains(":\n\n\r\n:\n\n"), "it comes: {said}");
            said.push_str(&String::from_utf8_lossy(&piece[..length]));
        }
        said
    };
    let hello = listen("", "event: hello");
    assert!(hello.contains("retry: 1000"), "{hello}");
    let waits = home.submit(&["--hold", "--", "true"]);
    let said = listen("last-event-id: other.5\r\n", "event: missed");
    let id = said.split("id: ").nth(1).and_then(|rest| rest.lines().next()).expect("an id");
    home.submit(&["--hold", "--", "true"]);
    let said = listen(&format!("last-event-id: {id}\r\n"), "event: task");
    assert!(said.contains(&format!("\"id\":{}", waits + 1)), "{said}");
    assert!(said.contains("\"reason_code\":\"held\""), "{said}");
}

#[test]
fn whoever_may_look_without_a_name_may_do_nothing_else() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--web", "127.0.0.1:0", "--web-anonymous"]);
    let task = home.submit(&["--", "echo", "secret"]);
    home.wait_for_state(task, "completed");
    let (port, _) = link(&home, &[]);
    let status = browse(port, "GET /v1/status", "", "").json();
    assert_eq!((&status["admin"], &status["scope"]), (&json!(false), &json!("read")), "{status}");
    let log = browse(port, &format!("GET /v1/tasks/{task}/log"), "", "");
    assert_eq!((log.status, &log.json()["code"]), (403, &json!("not_yours")), "outputs are secret");
    let refused = browse(port, "POST /v1/drain", "", "true");
    assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("read_only")));
    assert_eq!(browse(port, "POST /v1/web/code", "", "{}").status, 403);
}
