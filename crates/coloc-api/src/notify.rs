//! Hooks: which events of a task are told to whom, and how.

use coloc_model::Millis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The program that sends mail, unless a daemon is told another.
pub const SENDMAIL: &str = "/usr/sbin/sendmail";
/// Hooks of one submission.
pub const MOST_HOOKS: usize = 8;
/// The longest address of a channel, in bytes.
pub const LONGEST_ADDRESS: usize = 1024;

/// Something that happens to a task.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum NotifyEvent {
    /// It was started for the first time.
    Start,
    /// It has ended, however.
    End,
    /// It has ended, and neither completed nor was it cancelled.
    Fail,
    /// An attempt ran out of GPU memory, whether or not the task comes back.
    Oom,
    /// It has waited for long.
    Wait,
}

impl NotifyEvent {
    /// All of them.
    pub const ALL: [NotifyEvent; 5] = [
        NotifyEvent::Start,
        NotifyEvent::End,
        NotifyEvent::Fail,
        NotifyEvent::Oom,
        NotifyEvent::Wait,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            NotifyEvent::Start => "start",
            NotifyEvent::End => "end",
            NotifyEvent::Fail => "fail",
            NotifyEvent::Oom => "oom",
            NotifyEvent::Wait => "wait",
        }
    }
}

/// How something is told.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// By the machine's sendmail, to this address; without one to the user who submitted the task.
    Mail(Option<String>),
    /// A program, by its absolute path. It gets JSON on its standard input.
    Command(String),
    /// JSON is posted to this URL.
    Webhook(String),
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Channel::Mail(None) => f.write_str("mail"),
            Channel::Mail(Some(to)) => write!(f, "mail={to}"),
            Channel::Command(path) => f.write_str(path),
            Channel::Webhook(url) => f.write_str(url),
        }
    }
}

/// Events that are told in one way.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notify {
    /// The events.
    pub events: Vec<NotifyEvent>,
    /// How.
    pub channel: Channel,
    /// A wait of this many milliseconds is long; without it the daemon's setting says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub long_wait: Option<Millis>,
}

/// A hook that makes no sense.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotifyError {
    /// An event is not known.
    #[error("there is no event {0:?}: expected start, end, fail, oom, wait (or wait=2h), or all")]
    Event(String),
    /// No event at all.
    #[error("which events? Expected some of start, end, fail, oom, wait, or all")]
    NoEvent,
    /// A channel is not known.
    #[error(
        "cannot tell {0:?}: expected mail, mail=ADDRESS, http://HOST:PORT/PATH or the absolute path of a program"
    )]
    Channel(String),
    /// An address for mail.
    #[error("{0:?} is no address for mail: expected NAME or NAME@HOST")]
    Address(String),
    /// HTTPS.
    #[error(
        "{0:?}: webhooks are plain HTTP; for HTTPS name a program that posts, such as a script with curl"
    )]
    Https(String),
    /// A URL.
    #[error("{0:?} is no URL for a webhook: expected http://HOST[:PORT]/PATH")]
    Url(String),
    /// Too much of it.
    #[error(
        "a submission has at most {MOST_HOOKS} hooks, each address at most {LONGEST_ADDRESS} bytes"
    )]
    Bounds,
}

/// The parts of a webhook's URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookUrl {
    /// The host, a name or an address; IPv6 without brackets.
    pub host: String,
    /// The port, 80 if none was said.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

impl FromStr for HookUrl {
    type Err = NotifyError;

    fn from_str(text: &str) -> Result<Self, NotifyError> {
        let wrong = || NotifyError::Url(text.to_owned());
        if text.to_ascii_lowercase().starts_with("https://") {
            return Err(NotifyError::Https(text.to_owned()));
        }
        let rest = text.strip_prefix("http://").ok_or_else(wrong)?;
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
        if text.len() > LONGEST_ADDRESS || !text.bytes().all(plain) || text.contains('#') {
            return Err(wrong());
        }
        let (place, path) = match rest.find(['/', '?']) {
            Some(at) if rest[at..].starts_with('/') => (&rest[..at], rest[at..].to_owned()),
            Some(at) => (&rest[..at], format!("/{}", &rest[at..])),
            None => (rest, "/".to_owned()),
        };
        let (host, port) = match place.strip_prefix('[') {
            Some(inner) => {
                let (host, after) = inner.split_once(']').ok_or_else(wrong)?;
                host.parse::<std::net::Ipv6Addr>().map_err(|_| wrong())?;
                (host, after)
            }
            None => place.find(':').map_or((place, ""), |at| place.split_at(at)),
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_name) {
            return Err(wrong());
        }
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => 80,
            Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?,
            None => return Err(wrong()),
        };
        Ok(HookUrl { host: host.to_ascii_lowercase(), port, path })
    }
}

impl HookUrl {
    /// Whether a rule of the administrator's allows it: `HOST`, which is port 80, `HOST:PORT`, `HOST:*`, or `*`.
    pub fn is_allowed_by(&self, rule: &str) -> bool {
        let rule = rule.trim().to_ascii_lowercase();
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        rule == "*"
            || rule == format!("{host}:{}", self.port)
            || rule == format!("{host}:*")
            || (self.port == 80 && rule == host)
    }
}

/// Whether a text is a rule for [`HookUrl::is_allowed_by`].
pub fn check_webhook_rule(rule: &str) -> Result<String, String> {
    let host = rule.strip_suffix(":*").unwrap_or(rule);
    let is_place =
        !host.contains(['/', '?']) && format!("http://{host}/").parse::<HookUrl>().is_ok();
    match rule == "*" || is_place {
        true => Ok(rule.to_owned()),
        false => Err(format!("{rule:?}: expected HOST, HOST:PORT, HOST:* or *, without http://")),
    }
}

/// Addresses that reach no option of a mail program, and no header.
fn is_address(text: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~@-".contains(&byte);
    let (name, host) = text.split_once('@').map_or((text, None), |(name, host)| (name, Some(host)));
    let is_host = |host: &str| {
        !host.is_empty()
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
    };
    // What begins so is an option, a pipe or a file to some mail programs.
    let begins_well = name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
    text.len() <= 254 && begins_well && text.bytes().all(is_plain) && host.is_none_or(is_host)
}

impl Channel {
    /// Whether it can be used at all.
    pub fn check(&self) -> Result<(), NotifyError> {
        match self {
            Channel::Mail(None) => Ok(()),
            Channel::Mail(Some(to)) if is_address(to) => Ok(()),
            Channel::Mail(Some(to)) => Err(NotifyError::Address(to.clone())),
            Channel::Webhook(url) => url.parse::<HookUrl>().map(|_| ()),
            Channel::Command(path) if path.len() > LONGEST_ADDRESS => Err(NotifyError::Bounds),
            Channel::Command(path) => match path.starts_with('/') && !path.contains('\0') {
                true => Ok(()),
                false => Err(NotifyError::Channel(path.clone())),
            },
        }
    }
}

impl FromStr for Channel {
    type Err = NotifyError;

    fn from_str(text: &str) -> Result<Self, NotifyError> {
        let channel = match text {
            "mail" => Channel::Mail(None),
            path if path.starts_with('/') => Channel::Command(path.to_owned()),
            url if url.contains("://") => Channel::Webhook(url.to_owned()),
            _ => match text.strip_prefix("mail=") {
                Some(to) => Channel::Mail(Some(to.to_owned())),
                None => return Err(NotifyError::Channel(text.to_owned())),
            },
        };
        channel.check().map(|()| channel)
    }
}

impl Notify {
    /// Whether it can be used at all.
    pub fn check(&self) -> Result<(), NotifyError> {
        if self.events.is_empty() {
            return Err(NotifyError::NoEvent);
        }
        if self.events.len() > NotifyEvent::ALL.len() {
            return Err(NotifyError::Bounds);
        }
        self.channel.check()
    }

    /// Which of its events is told when these happen at once: the most telling one.
    pub fn picks(&self, happened: &[NotifyEvent]) -> Option<NotifyEvent> {
        happened.iter().copied().find(|event| self.events.contains(event))
    }
}

impl FromStr for Notify {
    type Err = NotifyError;

    /// `end,fail`, `all:mail=ann@example.org`, `wait=2h,fail:http://host:8080/x`, `oom:/usr/local/bin/told`.
    fn from_str(text: &str) -> Result<Self, NotifyError> {
        let (events, channel) = text.split_once(':').map_or((text, "mail"), |parts| parts);
        let mut notify = Notify { events: Vec::new(), channel: channel.parse()?, long_wait: None };
        for word in events.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let named = NotifyEvent::ALL.into_iter().find(|event| event.name() == word);
            match (named, word.strip_prefix("wait=")) {
                (Some(event), _) => notify.events.push(event),
                (None, Some(span)) => {
                    let span = span.parse().map_err(|_| NotifyError::Event(word.to_owned()))?;
                    notify.long_wait = Some(span);
                    notify.events.push(NotifyEvent::Wait);
                }
                (None, None) if word == "all" => notify.events.extend(NotifyEvent::ALL),
                (None, None) => return Err(NotifyError::Event(word.to_owned())),
            }
        }
        notify.events.sort_unstable();
        notify.events.dedup();
        notify.check().map(|()| notify)
    }
}

impl fmt::Display for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.events.iter().map(|event| event.name()).collect();
        write!(f, "{}:{}", names.join(","), self.channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Notify>().map(|notify| notify.to_string());
        assert_eq!(read("end,fail").unwrap(), "end,fail:mail");
        assert_eq!(
            read("all:mail=ann@example.org").unwrap(),
            "start,end,fail,oom,wait:mail=ann@example.org"
        );
        assert_eq!(
            read("oom:http://127.0.0.1:9000/x?y=1").unwrap(),
            "oom:http://127.0.0.1:9000/x?y=1"
        );
        assert_eq!(read("fail,fail:/usr/bin/true").unwrap(), "fail:/usr/bin/true");
        let wait: Notify = "wait=90m".parse().unwrap();
        assert_eq!(wait.long_wait, Some(Millis::from_secs(5400)));
        for (wrong, said) in [
            ("", "which events?"),
            ("ends", "no event"),
            ("wait=soon", "no event"),
            ("end:bob", "cannot tell"),
            ("end:bin/told", "cannot tell"),
            ("end:mail=-oQ/tmp", "no address"),
            ("end:mail=a@b\nBcc: c@d", "no address"),
            ("end:mail=|/bin/sh", "no address"),
            ("end:https://x/", "plain HTTP"),
            ("end:ftp://x/", "no URL"),
            ("end:http://", "no URL"),
            ("end:http://user@host/", "no URL"),
            ("end:http://host:0/", "no URL"),
            ("end:http://host/\r\nX: y", "no URL"),
        ] {
            let told = read(wrong).unwrap_err().to_string();
            assert!(told.contains(said), "{wrong:?}: {told}");
        }
    }

    #[test]
    fn an_address_is_allowed_by_its_host_and_port() {
        let allowed = |url: &str, rule: &str| url.parse::<HookUrl>().unwrap().is_allowed_by(rule);
        assert!(allowed("http://Hooks.example.org/x", "hooks.example.org"));
        assert!(!allowed("http://hooks.example.org:81/x", "hooks.example.org"));
        assert!(allowed("http://hooks.example.org:81/x", "hooks.example.org:*"));
        assert!(allowed("http://[::1]:9/", "[::1]:9") && allowed("http://x:1/", "*"));
        assert!(!allowed("http://169.254.169.254/", "hooks.example.org"));
        assert!(!allowed("http://hooks.example.org.evil.net/", "hooks.example.org"));
        for rule in ["*", "a.org", "a.org:80", "a.org:*", "[::1]:9", "[::1]:*", "10.0.0.5"] {
            assert!(check_webhook_rule(rule).is_ok(), "{rule}");
        }
        for wrong in ["", "http://foo", "a.org/x", "a.org:", "a.org:0", "a b", ":*", "a?b"] {
            assert!(check_webhook_rule(wrong).is_err(), "{wrong}");
        }
    }
}
