//! Telling hooks, each by a process of its own that gives up root before it does anything and has little time.

use super::shim::become_user;
use super::start::descriptor_of;
use super::{LocalExecutor, run_as};
use crate::administration::hooks::check_program;
use crate::executor::local::run::RunAs;
use crate::notices::{DeliveryError, HookOf, Notice};
use crate::owner::Input;
use coloc_api::notify::{Channel, HookUrl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A hook that takes longer is ended.
const LONGEST: Duration = Duration::from_secs(30);
/// A host that does not answer for so long is away.
const SILENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);
/// So much is read of what a hook says of a failure.
const LONGEST_WORD: u64 = 400;
/// The exit code of the process that tells, when there is no use in trying again.
const NEVER: i32 = 3;

/// What the process that tells a hook is to do.
#[derive(Debug, Serialize, Deserialize)]
struct DeliveryOrder {
    /// The user to become; nothing if that is the daemon's.
    user: Option<RunAs>,
    /// The user's name.
    name: String,
    notice: Notice,
    sendmail: String,
}

impl LocalExecutor {
    /// Tells a hook from a thread of its own; the owner hears what became of it.
    pub(super) fn tell(&self, notice: &Notice, sendmail: &Path) {
        let (inbox, program) = (self.inbox.clone(), self.program.clone());
        let (notice, sendmail) = (notice.clone(), sendmail.to_string_lossy().into_owned());
        let id = notice.id;
        let work = move || {
            let result = told(&program, notice, sendmail);
            let _ = inbox.send(Input::Delivered { id, result });
        };
        if let Err(error) = std::thread::Builder::new().name("notice".to_owned()).spawn(work) {
            let result = Err(DeliveryError::Later(error.to_string()));
            // A full inbox would have the owner wait for itself: then it is told after a restart.
            let _ = self.inbox.try_send(Input::Delivered { id, result });
        }
    }
}

fn later(error: impl std::fmt::Display) -> DeliveryError {
    DeliveryError::Later(error.to_string())
}

/// Runs the process that tells, and ends it if it takes too long.
fn told(program: &Path, notice: Notice, sendmail: String) -> Result<(), DeliveryError> {
    let user = match notice.hook_of {
        HookOf::Administrators => None,
        HookOf::User => run_as(notice.owner).map_err(later)?,
    };
    let name = crate::users::name(notice.owner);
    let order = DeliveryOrder { user, name, notice, sendmail };
    let mut child = Command::new(program)
        .arg("deliver")
        .env_clear()
        .stdin(Stdio::from(descriptor_of(&order).map_err(later)?))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .current_dir("/")
        .process_group(0)
        .spawn()
        .map_err(later)?;
    let said = child.stderr.take();
    let ended = ended_by(&mut child, Instant::now() + LONGEST).map_err(later)?;
    // Whatever it left behind has had its time too.
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
    let Some(status) = ended else {
        let _ = child.wait();
        return Err(later(format!("it did not end within {} s", LONGEST.as_secs())));
    };
    if status.success() {
        return Ok(());
    }
    let mut word = Vec::new();
    if let Some(said) = said {
        let _ = said.take(LONGEST_WORD).read_to_end(&mut word);
    }
    let word = String::from_utf8_lossy(&word).trim().to_owned();
    let word = if word.is_empty() { format!("it ended with {status}") } else { word };
    match status.code() {
        Some(NEVER) => Err(DeliveryError::Never(word)),
        _ => Err(later(word)),
    }
}

/// Waits for a process until then.
fn ended_by(child: &mut Child, end: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

/// What the process that tells does: the order is on standard input. Says the exit code.
pub fn deliver() -> i32 {
    let mut order = Vec::new();
    let read = io::stdin().read_to_end(&mut order);
    let order = read.and_then(|_| Ok(serde_json::from_slice::<DeliveryOrder>(&order)?));
    let done = order.map_err(|error| DeliveryError::Never(error.to_string())).and_then(|order| {
        // Before anything that the user chose is looked at.
        if let Some(user) = &order.user {
            become_user(user).map_err(later)?;
        }
        carry_out(&order)
    });
    match done {
        Ok(()) => 0,
        Err(error) => {
            crate::log::say(&format!("{error}\n"));
            if matches!(error, DeliveryError::Never(_)) { NEVER } else { 1 }
        }
    }
}

fn carry_out(order: &DeliveryOrder) -> Result<(), DeliveryError> {
    let notice = &order.notice;
    notice.channel.check().map_err(|error| DeliveryError::Never(error.to_string()))?;
    match &notice.channel {
        Channel::Command(path) => {
            check_owner(order, Path::new(path))?;
            run(Command::new(path), order, &notice.body)
        }
        Channel::Webhook(url) => {
            let url = url.parse().map_err(|error| DeliveryError::Never(format!("{error}")))?;
            post(&url, notice)
        }
        Channel::Mail(to) => {
            let to = to.as_deref().unwrap_or(&order.name);
            if !Path::new(&order.sendmail).exists() {
                let why =
                    format!("there is no {} here: this machine sends no mail", order.sendmail);
                return Err(DeliveryError::Never(why));
            }
            check_owner(order, Path::new(&order.sendmail))?;
            let mut sendmail = Command::new(&order.sendmail);
            sendmail.args(["-i", "--", to]);
            run(sendmail, order, &mail(to, notice))
        }
    }
}

/// A hook of the administrators' runs with the daemon's rights: whether no other user can have changed it.
fn check_owner(order: &DeliveryOrder, program: &Path) -> Result<(), DeliveryError> {
    match order.notice.hook_of {
        HookOf::User => Ok(()),
        HookOf::Administrators => {
            check_program(program).map_err(|error| DeliveryError::Never(error.to_string()))
        }
    }
}

/// Runs a program with this on its standard input, and with an environment of its own.
fn run(mut program: Command, order: &DeliveryOrder, input: &str) -> Result<(), DeliveryError> {
    let notice = &order.notice;
    program
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("USER", &order.name)
        .env("COLOC_NOTICE_ID", notice.id.to_string())
        .env("COLOC_NOTICE_EVENT", notice.event.name())
        .env("COLOC_TASK_ID", notice.task.0.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = program.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
            DeliveryError::Never(format!("the program cannot be run: {error}"))
        }
        _ => later(error),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program need not read it.
        let _ = stdin.write_all(input.as_bytes());
    }
    let status = child.wait().map_err(later)?;
    if status.success() { Ok(()) } else { Err(later(format!("the program ended with {status}"))) }
}

/// Posts a notice. Nothing that the host answers is followed or kept but whether it took it.
fn post(url: &HookUrl, notice: &Notice) -> Result<(), DeliveryError> {
    let mut failure = later(format!("{} has no address", url.host));
    let addresses = (url.host.as_str(), url.port).to_socket_addrs().map_err(later)?;
    for address in addresses.take(4) {
        let sent = TcpStream::connect_timeout(&address, SILENCE)
            .and_then(|stream| ask(stream, url, notice));
        match sent {
            Ok(status @ 200..=299) => {
                let _ = status;
                return Ok(());
            }
            Ok(status @ 400..=499) if ![408, 425, 429].contains(&status) => {
                return Err(DeliveryError::Never(format!("the host refuses it: HTTP {status}")));
            }
            Ok(status) => failure = later(format!("the host answers HTTP {status}")),
            Err(error) => failure = later(format!("{address}: {error}")),
        }
    }
    Err(failure)
}

fn ask(mut stream: TcpStream, url: &HookUrl, notice: &Notice) -> io::Result<u16> {
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    let host = if url.host.contains(':') { format!("[{}]", url.host) } else { url.host.clone() };
    let HookUrl { port, path, .. } = url;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: coloc/{}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nColoc-Notice-Id: {}\r\nConnection: close\r\n\r\n",
        env!("CARGO_PKG_VERSION"),
        notice.body.len(),
        notice.id
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(notice.body.as_bytes())?;
    let mut line = [0; 12];
    stream.read_exact(&mut line)?;
    let code =
        line.strip_prefix(b"HTTP/1.").and_then(|rest| std::str::from_utf8(rest.get(2..)?).ok());
    let code = code.and_then(|code| code.trim().parse().ok());
    code.ok_or_else(|| io::Error::other("what answers there speaks no HTTP"))
}

/// A letter. What users wrote has neither line ends nor anything but printable ASCII in its head.
fn mail(to: &str, notice: &Notice) -> String {
    let told: serde_json::Value = serde_json::from_str(&notice.body).unwrap_or_default();
    let task = &told["task"];
    let plain = |text: &str| -> String {
        let shown = text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' });
        shown.take(100).collect()
    };
    let (name, state) = (task["name"].as_str().unwrap_or(""), task["state"].as_str().unwrap_or(""));
    let happened = match notice.event.name() {
        "start" => "has started",
        "oom" => "ran out of GPU memory",
        "wait" => "has waited for long",
        _ => state,
    };
    let facts = ["reason", "exit_code", "attempts", "ooms", "gpu_ids", "peak_bytes"];
    let facts = facts.iter().filter(|fact| !task[**fact].is_null());
    let facts: String = facts.map(|fact| format!("{fact}: {}\n", task[*fact])).collect();
    let id = notice.task;
    format!(
        "To: {to}\nSubject: coloc: task {id} ({}) {happened}\nAuto-Submitted: auto-generated\n\
         Content-Type: text/plain; charset=utf-8\nColoc-Notice-Id: {}\n\nTask {id} ({}) {happened}.\n\nstate: {state}\n{facts}\n`coloc show {id}` tells more.\n",
        plain(name),
        notice.id,
        plain(name),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Uid;
    use coloc_api::moment::Moment;
    use coloc_api::notify::NotifyEvent;
    use coloc_model::TaskId;

    fn notice(channel: Channel, name: &str) -> Notice {
        let body = serde_json::json!({"task": {"name": name, "state": "failed", "exit_code": 1}});
        Notice {
            id: 7,
            task: TaskId(3),
            owner: Uid(0),
            event: NotifyEvent::Fail,
            at: Moment(0),
            channel,
            hook_of: HookOf::User,
            tries: 0,
            body: body.to_string(),
        }
    }

    #[test]
    fn a_name_cannot_become_a_header() {
        let letter = mail("ann", &notice(Channel::Mail(None), "x\nBcc: eve@evil.net\n\nhello"));
        let (head, body) = letter.split_once("\n\n").unwrap();
        assert!(
            !head.contains("\nBcc")
                && head.contains("Subject: coloc: task 3 (x?Bcc: eve@evil.net??hello) failed")
        );
        assert!(body.contains("exit_code: 1"));
    }

    #[test]
    fn a_hook_of_the_administrators_that_others_can_change_is_not_run() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let (program, ran) = (place.path().join("told"), place.path().join("ran"));
        std::fs::write(&program, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o777)).unwrap();
        let channel = Channel::Command(program.to_str().unwrap().to_owned());
        let order = |hook_of| DeliveryOrder {
            user: None,
            name: "ann".to_owned(),
            notice: Notice { hook_of, ..notice(channel.clone(), "x") },
            sendmail: String::new(),
        };
        let refused = carry_out(&order(HookOf::Administrators));
        assert!(matches!(refused, Err(DeliveryError::Never(why)) if why.contains("another user")));
        assert!(!ran.exists());
        assert_eq!(carry_out(&order(HookOf::User)), Ok(()), "a user's own is the user's business");
        assert!(ran.exists());
    }

    #[test]
    fn a_host_that_refuses_is_not_asked_again_and_one_that_is_busy_is() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answers = [
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\n\r\n",
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
            "SSH-2.0-OpenSSH",
        ];
        let server = std::thread::spawn(move || {
            answers.map(|answer| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = vec![0; 2048];
                let mut have = 0;
                while !String::from_utf8_lossy(&asked[..have]).contains("\"task\"") {
                    have += stream.read(&mut asked[have..]).unwrap();
                }
                stream.write_all(answer.as_bytes()).unwrap();
                String::from_utf8_lossy(&asked[..have]).into_owned()
            })
        });
        let url: HookUrl = format!("http://{address}/hook?x=1").parse().unwrap();
        let send = || post(&url, &notice(Channel::Webhook(String::new()), "x"));
        assert_eq!(send(), Ok(()));
        assert!(matches!(send(), Err(DeliveryError::Never(why)) if why.contains("404")));
        assert!(
            matches!(send(), Err(DeliveryError::Later(why)) if why.contains("302")),
            "not followed"
        );
        assert!(matches!(send(), Err(DeliveryError::Later(why)) if why.contains("no HTTP")));
        let asked = server.join().unwrap();
        assert!(asked[0].starts_with("POST /hook?x=1 HTTP/1.1\r\n"), "{}", asked[0]);
        assert!(asked[0].contains("Coloc-Notice-Id: 7\r\n"));
    }
}
