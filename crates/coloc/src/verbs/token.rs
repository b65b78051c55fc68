//! `coloc token`: what a client shows that talks to the daemon over the network.

use crate::args::live::SocketArg;
use crate::error::CliError;
use crate::output::print_text;
use crate::output::table::table;
use crate::verbs::queue::clock;
use clap::{Args, Subcommand};
use coloc_api::answer::TokenMade;
use coloc_api::moment::Moment;
use coloc_api::request::TokenRequest;
use coloc_api::view::{Scope, TokenView};
use coloc_model::Millis;

/// Make, list or revoke tokens for those who talk to the daemon over the network
#[derive(Args, Debug)]
pub(crate) struct Token {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    socket: SocketArg,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Make a token; it is shown this once
    Create {
        /// Whose it is; those of others are made by root and the daemon's user [default: yours]
        #[arg(long)]
        user: Option<String>,
        /// What it is for
        #[arg(long, default_value = "")]
        label: String,
        /// How long it is good for, such as 12h or 30d, or never to let it last
        #[arg(long, value_name = "SPAN", default_value = "90d")]
        expires: Lasts,
        /// It may be used to look, and for nothing else
        #[arg(long)]
        read: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List your tokens; an administrator sees everybody's
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make tokens useless, from now on
    Revoke {
        /// Their numbers
        #[arg(required = true)]
        ids: Vec<u32>,
    },
}

/// A span, or for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Lasts(Option<Millis>);

impl std::str::FromStr for Lasts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Lasts(None));
        }
        text.parse().map(|span| Lasts(Some(span))).map_err(|error| format!("{error}; or never"))
    }
}

impl Token {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        match self.what {
            What::Create { user, label, expires, read, json } => {
                let lasts_s = expires.0.map(Millis::secs);
                let scope = if read { Scope::Read } else { Scope::Act };
                let made = client.create_token(&TokenRequest { user, label, lasts_s, scope })?;
                if json {
                    return print_json(&made);
                }
                // The token alone is the output, so that a file with it is a token file.
                print_text(&made.token)?;
                eprintln!("{}", told(&made));
                Ok(())
            }
            What::List { json } => {
                let list = client.tokens()?;
                if json {
                    print_json(&list)
                } else {
                    print_text(&table_of(&list.tokens, Moment::now().secs()))
                }
            }
            What::Revoke { ids } => {
                for id in ids {
                    client.revoke_token(id)?;
                    print_text(&format!("Token {id} is of no use any more"))?;
                }
                Ok(())
            }
        }
    }
}

fn print_json(body: &impl serde::Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(body);
    print_text(&text.map_err(|error| CliError::Refused(error.to_string()))?)
}

/// What to do with it, for people.
fn told(made: &TokenMade) -> String {
    let TokenMade { view, listens, fingerprint, .. } = made;
    let user = &view.user;
    let mut text = format!("This is token {} of {user}. It is not shown again.", view.id);
    match (listens, fingerprint) {
        (Some(listens), Some(fingerprint)) => text.push_str(&format!(
            " The daemon listens at {listens}; elsewhere:\n\n  \
             export COLOC_HOST=HOST:{} COLOC_FINGERPRINT={fingerprint}\n  \
             export COLOC_TOKEN=…          # or a file of mode 600, named by COLOC_TOKEN_FILE:\n  \
             (umask 077; coloc token create > token)",
            listens.rsplit(':').next().unwrap_or("PORT")
        )),
        _ => text.push_str(" The daemon does not listen on the network: `coloc daemon --listen`."),
    }
    text
}

fn table_of(tokens: &[TokenView], now: f64) -> String {
    let ago = |then: Option<f64>| match then {
        Some(then) => format!("{} ago", clock(now - then)),
        None => "-".to_owned(),
    };
    let ends = |token: &TokenView| match (token.revoked_s, token.expires_s) {
        (Some(_), _) => "revoked".to_owned(),
        (None, None) => "never".to_owned(),
        (None, Some(ends)) if ends <= now => "expired".to_owned(),
        (None, Some(ends)) => format!("in {}", clock(ends - now)),
    };
    let row = |token: &TokenView| {
        let TokenView { id, user, label, .. } = token;
        let (made, used) = (ago(Some(token.created_s)), ago(token.last_used_s));
        let scope = match token.scope {
            Scope::Read => "read",
            Scope::Act => "act",
        };
        vec![id.to_string(), user.clone(), label.clone(), scope.into(), made, used, ends(token)]
    };
    table(&["ID", "USER", "LABEL", "SCOPE", "MADE", "USED", "ENDS"], tokens.iter().map(row))
}
