//! The network: TLS or nothing, a token or nothing, and the same rules for its user as at the socket.

use super::home::{Home, coloc, skipped, text};
use super::http::{Reply, ask, ask_over};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

/// A daemon that listens on the network too.
pub(super) struct Remote {
    pub(super) home: Home,
    port: u16,
    fingerprint: String,
}

impl Remote {
    pub(super) fn new(arguments: &[&str]) -> Self {
        let all: Vec<&str> = ["--emulate", "1xA100-40GB", "--listen", "127.0.0.1:0"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        Remote::at(Home::new(&all))
    }

    fn at(home: Home) -> Self {
        let told = |home: &Home| {
            let log = std::fs::read_to_string(home.path().join("daemon.log")).expect("a log");
            let (_, place) = log.split_once("https://")?;
            place.split_once('\n').map(|(place, _)| place.to_owned())
        };
        home.wait_for("where it listens", |home| told(home).is_some());
        let place = told(&home).expect("it says where");
        let port = place.split([':', ',']).nth(1).and_then(|port| port.parse().ok());
        let port = port.expect("a port");
        let fingerprint = place.rsplit(' ').next().expect("a fingerprint").to_owned();
        Remote { home, port, fingerprint }
    }

    fn host(&self) -> String {
        format!("localhost:{}", self.port)
    }

    pub(super) fn token(&self, arguments: &[&str]) -> String {
        let all: Vec<&str> = ["token", "create"].iter().chain(arguments).copied().collect();
        self.home.run(&all).lines().next().expect("a token").to_owned()
    }

    /// The command line, from elsewhere.
    pub(super) fn run_elsewhere(&self, token: &str, arguments: &[&str]) -> Output {
        self.elsewhere(token).args(arguments).output().expect("it runs")
    }

    pub(super) fn elsewhere(&self, token: &str) -> Command {
        let mut command = coloc();
        command
            .env("COLOC_HOST", self.host())
            .env("COLOC_FINGERPRINT", &self.fingerprint)
            .env("COLOC_TOKEN", token)
            // Set to nothing is as good as not set.
            .env("COLOC_SOCKET", "")
            .env("COLOC_CA", "")
            .env("HOME", "/nonexistent");
        command
    }

    /// A question by hand over TLS.
    fn ask(&self, line: &str, headers: &str, body: &[u8]) -> Reply {
        let fingerprint = self.fingerprint.parse().expect("a fingerprint");
        let config = coloc_api::tls::Trust::Pinned(fingerprint).client().expect("TLS");
        let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
        let connection = rustls::ClientConnection::new(config, name).expect("a connection");
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a place");
        ask_over(rustls::StreamOwned::new(connection, stream), line, headers, body)
    }
}

fn refused(output: &Output, said: &str) {
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let error = text(&output.stderr);
    assert!(error.contains(said), "{said:?} is not in {error}");
}

#[test]
fn tasks_run_elsewhere_and_tokens_that_end() {
    let remote = Remote::new(&[]);
    let token = remote.token(&["--label", "laptop"]);
    let run = remote.run_elsewhere(&token, &["run", "--", "sh", "-c", "echo hello; exit 7"]);
    assert_eq!(
        (run.status.code(), text(&run.stdout).as_str()),
        (Some(7), "hello\n"),
        "{}",
        text(&run.stderr)
    );
    let list = remote.home.json(&["token", "list"]);
    assert_eq!((&list["schema"], &list["tokens"][0]["label"]), (&1.into(), &"laptop".into()));
    assert!(list["tokens"][0]["last_used_s"].is_number());
    let state = remote.home.path().join("state");
    let kept = std::fs::read_to_string(state.join("tokens.json")).expect("a file");
    assert!(!kept.contains(token.rsplit('_').next().expect("a secret")));
    for file in ["tokens.json", "tls/key.pem"] {
        let mode = std::fs::metadata(state.join(file)).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }

    refused(&remote.run_elsewhere("", &["queue"]), "no token was shown");
    refused(&remote.run_elsewhere("hunter2", &["queue"]), "not valid here");
    let last = if token.ends_with('0') { '1' } else { '0' };
    let wrong = format!("{}{last}", &token[..token.len() - 1]);
    refused(&remote.run_elsewhere(&wrong, &["queue"]), "not valid here");
    refused(&remote.run_elsewhere(&token, &["token", "create"]), "a token cannot make tokens");
    let brief = remote.token(&["--expires", "1s"]);
    remote.home.wait_for("its end", |_| !remote.run_elsewhere(&brief, &["queue"]).status.success());
    refused(&remote.run_elsewhere(&brief, &["queue"]), "has expired");
    assert!(remote.run_elsewhere(&token, &["token", "revoke", "1"]).status.success());
    refused(&remote.run_elsewhere(&token, &["queue"]), "was revoked");
    refused(&remote.home.try_run(&["token", "revoke", "99"]), "there is no token 99");
}

#[test]
fn certificates_are_pinned_or_vouched_for_and_survive_a_restart() {
    let mut remote = Remote::new(&[]);
    let token = remote.token(&[]);
    let unknown = remote.elsewhere(&token).env_remove("COLOC_FINGERPRINT").arg("queue").output();
    refused(&unknown.expect("it runs"), &remote.fingerprint);
    let other = format!("sha256:{}", "ab".repeat(32));
    let fooled = remote.elsewhere(&token).env("COLOC_FINGERPRINT", other).arg("queue").output();
    refused(&fooled.expect("it runs"), "or it is another daemon");
    let ca = remote.home.path().join("state/tls/cert.pem");
    let by_name = |host: &str| {
        let mut command = remote.elsewhere(&token);
        command.env_remove("COLOC_FINGERPRINT").env("COLOC_CA", &ca);
        command.args(["queue", "--host", host]).output().expect("it runs")
    };
    assert!(by_name(&remote.host()).status.success(), "{}", text(&by_name(&remote.host()).stderr));
    refused(&by_name(&format!("127.0.0.2:{}", remote.port)), "127.0.0.2");
    let plain = remote.run_elsewhere(&token, &["queue", "--host", "http://localhost:1"]);
    assert_eq!(plain.status.code(), Some(2));

    let before = remote.fingerprint.clone();
    remote.home.stop();
    remote.home.boot();
    let remote = Remote::at(remote.home);
    assert_eq!(remote.fingerprint, before);
    assert!(remote.run_elsewhere(&token, &["queue"]).status.success());
}

#[test]
fn without_tls_or_a_token_nothing_is_looked_at() {
    let remote = Remote::new(&[]);
    let clear = TcpStream::connect(("127.0.0.1", remote.port)).expect("a place");
    let reply = ask_over(clear, "GET /v1/tasks", "", b"");
    assert_eq!((reply.status, text(&reply.body).contains("speaks TLS")), (400, true));
    let mut garbage = TcpStream::connect(("127.0.0.1", remote.port)).expect("a place");
    garbage.write_all(&[0x16, 3, 1, 0xff, 0xff, 0, 1, 2]).expect("sent");
    let silent: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(("127.0.0.1", remote.port)).expect("a place"))
        .collect();

    for line in
        ["GET /v1/tasks", "POST /v1/tasks", "GET /openapi.json", "GET /nowhere", "PUT /v1/gpus"]
    {
        let reply = remote.ask(line, "", &[b'['; 1 << 16]);
        assert_eq!(reply.status, 401, "{line}: {}", text(&reply.body));
        assert!(reply.head.contains("coloc-schema: 1"), "{}", reply.head);
    }
    for header in [
        "authorization: Basic cm9vdDo=\r\n",
        "authorization: Bearer \r\n",
        "authorization: \u{ff}\r\n",
    ] {
        assert_eq!(remote.ask("GET /v1/tasks", header, b"").status, 401, "{header:?}");
    }
    let token = format!("authorization: Bearer {}\r\n", remote.token(&[]));
    assert_eq!(remote.ask("GET /v1/tasks", &token, b"").status, 200);
    let wide = format!("{token}x: {}\r\n", "x".repeat(1 << 20));
    let reply = remote.ask("GET /v1/tasks", &wide, b"");
    assert!([0, 431].contains(&reply.status), "{}", reply.status);
    let many: String = (0..200).map(|n| format!("x-{n}: y\r\n")).collect();
    assert_eq!(remote.ask("GET /v1/tasks", &format!("{token}{many}"), b"").status, 431);
    assert_eq!(remote.ask("POST /v1/tasks", &token, &vec![b' '; 17 << 20]).status, 413);
    garbage.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    let mut rest = Vec::new();
    garbage.read_to_end(&mut rest).ok();
    assert!(!text(&rest).contains("HTTP"));
    drop(silent);
}

#[test]
fn a_token_speaks_for_its_user() {
    if !rustix::process::geteuid().is_root() {
        skipped("only root can be two users");
        return;
    }
    let remote = Remote::new(&[]);
    let theirs = remote.token(&["--user", "nobody"]);
    let roots = remote.home.submit(&["--hold", "--", "true"]).to_string();
    refused(&remote.run_elsewhere(&theirs, &["cancel", &roots]), "belongs to another user");
    refused(&remote.run_elsewhere(&theirs, &["drain"]), "only an administrator");
    let mut run = remote.elsewhere(&theirs);
    let run = run.current_dir("/tmp").args(["run", "--", "id", "-u"]).output().expect("it runs");
    assert_eq!(text(&run.stdout), "65534\n", "{}", text(&run.stderr));
    let mine = remote.token(&[]);
    let list = text(&remote.run_elsewhere(&theirs, &["token", "list"]).stdout);
    assert!(list.contains("nobody") && !list.contains("root"), "{list}");
    refused(&remote.run_elsewhere(&theirs, &["token", "revoke", "2"]), "another user");
    assert!(
        remote.run_elsewhere(&mine, &["cancel", &roots]).status.success(),
        "an administrator's"
    );
    let body = br#"{"user":"root"}"#;
    let sneaky =
        remote.ask("POST /v1/tokens", &format!("authorization: Bearer {theirs}\r\n"), body);
    assert_eq!(sneaky.status, 403);
    assert_eq!(ask(&remote.home, "POST /v1/tokens", "", br#"{"user":"no such"}"#).status, 422);
    assert_eq!(ask(&remote.home, "POST /v1/tokens", "", br#"{"lasts_s":-1}"#).status, 422);
}

#[test]
fn a_token_in_a_file_is_for_one_pair_of_eyes() {
    let remote = Remote::new(&[]);
    let file = remote.home.path().join("token");
    std::fs::write(&file, format!("{}\n", remote.token(&[]))).expect("a file");
    let with_mode = |mode: u32| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&file, mode).expect("it is ours");
        let mut command = remote.elsewhere("");
        command.env("COLOC_TOKEN_FILE", &file).arg("queue").output().expect("it runs")
    };
    let loose = with_mode(0o644);
    assert_eq!(loose.status.code(), Some(2));
    assert!(text(&loose.stderr).contains("chmod 600"), "{}", text(&loose.stderr));
    assert!(with_mode(0o600).status.success());
    let missing = remote.elsewhere("").args(["queue", "--token-file", "/nonexistent"]).output();
    assert_eq!(missing.expect("it runs").status.code(), Some(2));
}

#[test]
fn a_certificate_of_ones_own() {
    let place = tempfile::tempdir().expect("a directory");
    let identity = coloc_daemon::tls::Identity::own(place.path(), [127, 0, 0, 1].into());
    let identity = identity.expect("a certificate");
    let (_, fingerprint) = identity.server().expect("it is right");
    let path = |file: &Path| file.to_str().expect("a path").to_owned();
    let (cert, key) = (path(&identity.certificate), path(&identity.key));
    let remote = Remote::new(&["--tls-cert", &cert, "--tls-key", &key]);
    assert_eq!(remote.fingerprint, fingerprint.to_string());
    assert!(!remote.home.path().join("state/tls").exists());
    let token = remote.token(&[]);
    assert!(remote.run_elsewhere(&token, &["queue"]).status.success());
}

/// A connection from an address of this machine's own.
fn connect_from(last: u8, port: u16) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    use std::net::{Ipv4Addr, SocketAddrV4};
    let stream = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    let at = |last, port| SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, last), port);
    bind(&stream, &at(last, 0)).expect("an address");
    connect(&stream, &at(1, port)).expect("a place");
    stream.into()
}

fn is_hung_up_on(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a stream");
    let read = stream.read(&mut [0]);
    !read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[test]
fn silent_strangers_delay_no_token() {
    let remote = Remote::new(&[]);
    let token = remote.token(&[]);
    // Some agree on keys and then say nothing, others not even that.
    let fingerprint = remote.fingerprint.parse().expect("a fingerprint");
    let config = coloc_api::tls::Trust::Pinned(fingerprint).client().expect("TLS");
    let agreed: Vec<_> = (0..20)
        .map(|_| {
            let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
            let mut connection =
                rustls::ClientConnection::new(config.clone(), name).expect("a connection");
            let mut stream = connect_from(2, remote.port);
            while connection.is_handshaking() && connection.complete_io(&mut stream).is_ok() {}
            stream
        })
        .collect();
    let mut silent: Vec<TcpStream> =
        (0..600).map(|n| connect_from(1 + (n % 2) as u8, remote.port)).collect();
    let began = std::time::Instant::now();
    let queue = remote.run_elsewhere(&token, &["queue"]);
    assert!(queue.status.success(), "{}", text(&queue.stderr));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    // Each address has few places, and the oldest made room.
    let gone = silent.iter_mut().filter_map(|stream| is_hung_up_on(stream).then_some(())).count();
    assert!(gone >= 500, "{gone} of 600 are gone");
    assert!(silent.iter_mut().rev().take(10).all(|stream| !is_hung_up_on(stream)), "not the last");
    drop((agreed, silent));
}

#[test]
fn who_has_shown_a_token_is_not_sent_away() {
    let remote = Remote::new(&[]);
    let header = format!("authorization: Bearer {}\r\n", remote.token(&[]));
    let fingerprint = remote.fingerprint.parse().expect("a fingerprint");
    let config = coloc_api::tls::Trust::Pinned(fingerprint).client().expect("TLS");
    let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
    let connection = rustls::ClientConnection::new(config, name).expect("a connection");
    let mut known = rustls::StreamOwned::new(connection, connect_from(1, remote.port));
    let question = format!("GET /v1/events HTTP/1.1\r\nhost: coloc\r\n{header}\r\n");
    known.write_all(question.as_bytes()).expect("a question");
    let mut head = [0; 15];
    known.read_exact(&mut head).expect("an answer");
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    let timeout = Some(Duration::from_secs(60));
    known.sock.set_read_timeout(timeout).expect("a limit");
    let crowd: Vec<TcpStream> = (0..300).map(|_| connect_from(1, remote.port)).collect();
    assert_eq!(remote.ask("GET /v1/tasks", &header, b"").status, 200, "another one gets in");
    remote.home.run(&["run", "--", "true"]);
    let mut told = Vec::new();
    while !text(&told).contains("event: task") {
        let mut piece = [0; 4096];
        let length = known.read(&mut piece).expect("it is still there");
        assert!(length > 0, "hung up on: {}", text(&told));
        told.extend_from_slice(&piece[..length]);
    }
    drop(crowd);
}

/// A token that was revoked must not be good again after a power loss: its file's new name is on the disk before the answer.
#[test]
fn a_revoked_token_is_on_the_disk_with_its_name() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    home.run(&["token", "create"]);
    let trace = home.path().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-qq", "-e", "trace=rename,renameat,renameat2,fsync,fdatasync", "-o"]);
    strace.arg(&trace).args(["-p", &home.pid().to_string()]);
    let Ok(mut strace) = strace.stderr(std::process::Stdio::null()).spawn() else {
        return skipped("there is no strace");
    };
    let is_traced = |_: &Home| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", home.pid()));
        status.is_ok_and(|status| !status.contains("TracerPid:\t0\n"))
    };
    let began = std::time::Instant::now();
    while !is_traced(&home) {
        let ended = strace.try_wait().expect("it is ours").is_some();
        if ended || began.elapsed() > Duration::from_secs(30) {
            let _ = strace.kill();
            return skipped("strace may not trace here");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    home.run(&["token", "revoke", "1"]);
    strace.kill().expect("it is ours");
    strace.wait().expect("it ends");
    let trace = std::fs::read_to_string(&trace).expect("a trace");
    let state = home.path().join("state");
    let lines: Vec<&str> = trace.lines().collect();
    let renamed =
        lines.iter().position(|line| line.contains("tokens.json") && line.contains("rename"));
    let (before, after) = lines.split_at(renamed.expect(&trace));
    let synced = |lines: &[&str], name: &str| {
        lines.iter().any(|line| line.contains("sync(") && line.contains(&format!("<{name}>")))
    };
    assert!(synced(before, &state.join("tokens.new").display().to_string()), "{trace}");
    assert!(synced(after, &state.display().to_string()), "{trace}");
}

#[test]
fn a_revoked_token_hears_no_more_events() {
    let remote = Remote::new(&[]);
    let header = format!("authorization: Bearer {}\r\n", remote.token(&[]));
    let heard = std::thread::scope(|scope| {
        let stream = scope.spawn(|| remote.ask("GET /v1/events", &header, b""));
        let submit = |name: &str| remote.home.submit(&["-J", name, "--", "true"]);
        remote.home.wait_for("its use", |home| {
            home.json(&["token", "list"])["tokens"][0]["last_used_s"].is_number()
        });
        // The stream may begin a moment after its token was noted.
        (0..5).for_each(|_| remote.home.wait_for_state(submit("before"), "completed"));
        remote.home.run(&["token", "revoke", "1"]);
        remote.home.wait_for_state(submit("after"), "completed");
        stream.join().expect("the stream ends")
    });
    let told = String::from_utf8_lossy(&heard.body);
    assert!(told.contains("\"before\"") && !told.contains("\"after\""), "{told}");
}
