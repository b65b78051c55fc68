//! `coloc top`: one frame as text, and the real thing in a terminal that tmux emulates.

use super::home::{Home, coloc, skipped, text};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A daemon with tasks that run and wait.
fn busy() -> Home {
    let home = Home::new(&["--emulate", "4xA100-40GB", "--time-scale", "20"]);
    let train = env!("CARGO_BIN_EXE_coloc");
    for (name, memory) in [("resnet50", "11G"), ("bert", "8G"), ("unet", "6G"), ("vit", "16G")] {
        let words =
            ["-J", name, "--gpu-mem", memory, "--", train, "emu", "train", "--memory", "3G"];
        home.submit(&[&words[..], &["--sm", "0.3", "--seconds", "90000"]].concat());
    }
    home.wait_for_state(4, "running");
    home.submit(&["-J", "nightly", "--hold", "--gpu-mem", "1G", "--", "true"]);
    home.submit(&["-J", "evil\x1b[2J\x07name", "--gpu-mem", "39G", "--", "sleep", "900"]);
    home
}

#[test]
fn one_frame_is_printed_at_any_size() {
    let home = busy();
    for (width, height) in [("80", "24"), ("140", "45"), ("100", "30"), ("60", "15")] {
        let frame = home.run(&["top", "--once", "--width", width, "--height", height]);
        let (columns, lines): (usize, usize) = (width.parse().unwrap(), height.parse().unwrap());
        assert_eq!(frame.lines().count(), lines, "{frame}");
        for line in frame.lines() {
            assert_eq!(line.chars().count(), columns, "{line:?}\n{frame}");
        }
        assert!(frame.contains(" coloc  ") && frame.contains("resnet50"), "{frame}");
        assert!(!frame.contains('\x1b') && !frame.contains('\x07'), "{frame}");
    }
    let mut command = coloc();
    let environment = [
        ("COLUMNS", "90".into()),
        ("LINES", "26".into()),
        ("COLOC_SOCKET", home.socket().into_os_string()),
    ];
    let output = command.args(["top", "--once"]).envs(environment).output().expect("it runs");
    let frame = text(&output.stdout);
    let sizes: Vec<usize> = frame.lines().map(|line| line.chars().count()).collect();
    assert_eq!(sizes, [90; 26], "{frame}");
    let refused = home.try_run(&["top"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("--once"), "{}", text(&refused.stderr));
}

/// A terminal with `coloc top` in it.
struct Tmux {
    socket: PathBuf,
    written: PathBuf,
}

impl Tmux {
    fn start(home: &Home, columns: &str, lines: &str) -> Self {
        let (socket, written) = (home.path().join("tmux"), home.path().join("written"));
        let tmux = Tmux { socket, written };
        let program = format!(
            "env NO_COLOR=1 COLOC_CONFIG=/dev/null COLOC_SOCKET={} {} top; echo it ended; cat",
            home.socket().display(),
            env!("CARGO_BIN_EXE_coloc")
        );
        tmux.run(&["-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", lines, "cat"]);
        tmux.run(&["set-option", "-g", "status", "off"]);
        tmux.run(&["resize-window", "-x", columns, "-y", lines]);
        let pipe = format!("cat > {}", tmux.written.display());
        tmux.run(&["pipe-pane", &pipe]);
        tmux.run(&["respawn-pane", "-k", &program]);
        tmux
    }

    fn run(&self, words: &[&str]) -> String {
        let output = Command::new("tmux").arg("-S").arg(&self.socket).args(words).output();
        let output = output.expect("tmux runs");
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    fn press(&self, key: &str) {
        self.run(&["send-keys", key]);
    }

    fn wait_for(&self, what: &str) -> String {
        let began = Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(what) {
                return screen;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "no {what:?} in\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

fn has_tmux() -> bool {
    Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success())
}

/// Full clears among what was written to the terminal.
fn clears(written: &Path) -> usize {
    let written = std::fs::read(written).unwrap_or_default();
    written.windows(4).filter(|four| four == b"\x1b[2J").count()
}

/// Other sizes and back; nothing of another size stays.
fn resize(tmux: &Tmux) {
    for (columns, lines) in [("140", "45"), ("100", "30"), ("70", "20"), ("40", "10"), ("80", "24")]
    {
        tmux.run(&["resize-window", "-x", columns, "-y", lines]);
        let sign = match columns {
            "140" => "NOTE, OR WHY IT WAITS",
            "40" => "running",
            _ => "USED/PROM",
        };
        let screen = tmux.wait_for(sign);
        let heads = screen.lines().filter(|line| line.trim_start().starts_with("coloc"));
        assert_eq!(heads.count(), 1, "no rest of another size:\n{screen}");
    }
}

#[test]
fn a_person_watches_presses_keys_and_resizes() {
    if !has_tmux() {
        return skipped("no tmux, so `coloc top` is not seen in a terminal");
    }
    let mut home = busy();
    let tmux = Tmux::start(&home, "80", "24");
    let screen = tmux.wait_for("resnet50");
    assert!(screen.contains("q quit") && screen.contains("live "), "{screen}");
    tmux.press("?");
    tmux.wait_for("Keys and signs");
    tmux.press("Escape");
    resize(&tmux);
    tmux.press("/");
    tmux.run(&["send-keys", "-l", "nightly"]);
    tmux.press("Enter");
    tmux.wait_for("▌");
    tmux.press("h");
    tmux.wait_for("is released");
    home.wait_for("the release", |home| home.state(5) != "pending");
    tmux.press("Escape");
    tmux.press("/");
    tmux.run(&["send-keys", "-l", "unet"]);
    tmux.press("Enter");
    tmux.press("Enter");
    tmux.wait_for("is launched on GPU");
    tmux.press("Escape");
    tmux.press("l");
    tmux.wait_for("Output 3 unet");
    tmux.press("c");
    tmux.wait_for("Cancel 3 unet?");
    tmux.press("y");
    home.wait_for_state(3, "cancelled");
    tmux.press("Escape");
    home.kill();
    tmux.wait_for("STALE since");
    home.boot();
    tmux.wait_for("live ");
    tmux.press("q");
    let screen = tmux.wait_for("it ended");
    assert!(!screen.contains("USED/PROM"), "the terminal is as it was:\n{screen}");
    assert_eq!(clears(&tmux.written), 0);
}
