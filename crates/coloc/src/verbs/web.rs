//! `coloc web`: signs in to the dashboard that the daemon serves.

use crate::args::live::SocketArg;
use crate::error::CliError;
use crate::output::print_text;
use clap::Args;
use coloc_api::request::WebCodeRequest;
use coloc_api::view::Scope;
use std::io::IsTerminal as _;
use std::process::{Command, Stdio};

/// Open the dashboard in a browser, signed in
#[derive(Args, Debug)]
pub(crate) struct Web {
    #[command(flatten)]
    socket: SocketArg,
    /// Print the link and nothing else; it works once, for a minute
    #[arg(long)]
    print: bool,
    /// The page may cancel, hold and change tasks as you may
    #[arg(long)]
    act: bool,
    /// The page may look, and do nothing else; the default
    #[arg(long, conflicts_with = "act")]
    read: bool,
}

impl Web {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let scope = if self.act { Scope::Act } else { Scope::Read };
        let code = self.socket.connect()?.web_code(&WebCodeRequest { scope })?;
        if self.print {
            return print_text(&code.url);
        }
        let opened = may_open() && open(&code.url);
        let how = if opened { "A browser opens it" } else { "Open it in a browser" };
        print_text(&format!(
            "{}\n\n{how}. The link works once, within a minute; the page is signed in for 12 hours.{}{}",
            code.url,
            if self.act { "" } else { " It may look only: `coloc web --act` lets it act." },
            tunnel(&code.url),
        ))
    }
}

/// Whether there is a screen here that a browser could be on.
fn may_open() -> bool {
    let said = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let screen = said("DISPLAY") || said("WAYLAND_DISPLAY");
    screen && !said("SSH_CONNECTION") && std::io::stdout().is_terminal()
}

/// Has the desktop open a link. What it says is not for our terminal.
fn open(url: &str) -> bool {
    let mut opener = Command::new("xdg-open");
    let opener = opener.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    opener.status().is_ok_and(|status| status.success())
}

/// How the link is reached from the machine that one sits at.
fn tunnel(url: &str) -> String {
    let remote = std::env::var_os("SSH_CONNECTION").is_some_and(|value| !value.is_empty());
    let port = url.split('/').nth(2).and_then(|host| host.rsplit(':').next());
    match port.filter(|_| remote && url.starts_with("http://")) {
        Some(port) => {
            format!("\nFrom your own machine, first: ssh -L {port}:localhost:{port} THIS-MACHINE")
        }
        None => String::new(),
    }
}
