//! What keeps other pages out: a browser says which name it was asked for and which page asks. And what a browser is told to forbid.

use super::files;
use crate::api::answer::Failure;
use axum::Router;
use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};

/// Nothing but the page's own files and its own daemon. Scripts cannot make text into code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// Where a browser comes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::api) enum Door {
    /// In the clear, on this machine alone.
    Loopback {
        /// A client that shows no token may look.
        anonymous: bool,
    },
    /// Over the network, with TLS.
    Network,
}

impl Door {
    const fn scheme(self) -> &'static str {
        match self {
            Door::Loopback { .. } => "http",
            Door::Network => "https",
        }
    }
}

/// The interface with the page beside it, and what keeps other pages out.
pub(in crate::api) fn with_page(router: Router, door: Door) -> Router {
    router.layer(from_fn(move |request: Request, next: Next| serve(door, request, next)))
}

async fn serve(door: Door, mut request: Request, next: Next) -> Response {
    let page = match *request.method() {
        Method::GET | Method::HEAD => files::at(request.uri().path(), request.headers()),
        _ => None,
    };
    let answer = match check(door, request.headers(), page.is_some()) {
        Err(refused) => refused.into_response(),
        Ok(()) => match page {
            Some(page) => page,
            None => {
                request.extensions_mut().insert(door);
                next.run(request).await
            }
        },
    };
    secured(answer)
}

/// Whether a request is meant for this daemon, and comes from its own page or from no page at all.
fn check(door: Door, headers: &HeaderMap, is_page: bool) -> Result<(), Failure> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(HOST).unwrap_or("");
    if matches!(door, Door::Loopback { .. }) && !is_this_machine(host) {
        return Err(Failure::WrongHost);
    }
    if let Some(origin) = text(ORIGIN)
        && origin.strip_prefix(door.scheme()).and_then(|rest| rest.strip_prefix("://"))
            != Some(host)
    {
        return Err(Failure::CrossSite);
    }
    match text(HeaderName::from_static("sec-fetch-site")) {
        None | Some("same-origin" | "none") => Ok(()),
        // A link to the page may stand anywhere: following one shows no token.
        Some(_)
            if is_page && text(HeaderName::from_static("sec-fetch-mode")) == Some("navigate") =>
        {
            Ok(())
        }
        // Another port of this machine is the same site, and may be another user's.
        Some(_) => Err(Failure::CrossSite),
    }
}

/// A name of this machine that no name server decides about, at any port: tunnels have others.
pub(in crate::api) fn is_this_machine(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').unwrap_or((rest, "")),
        None => host.find(':').map_or((host, ""), |colon| host.split_at(colon)),
    };
    let port_fits =
        port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    let is_v6 = host.starts_with('[');
    let named = match is_v6 {
        true => name == "::1",
        false => name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1",
    };
    named && port_fits
}

fn secured(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    let mut say = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    say(CONTENT_SECURITY_POLICY, POLICY);
    say(X_CONTENT_TYPE_OPTIONS, "nosniff");
    say(X_FRAME_OPTIONS, "DENY");
    say(REFERRER_POLICY, "no-referrer");
    say(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    say(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Door = Door::Loopback { anonymous: false };

    fn asked(door: Door, page: bool, headers: &[(&'static str, &str)]) -> bool {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.insert(HeaderName::from_static(name), value.parse().expect("a value"));
        }
        check(door, &all, page).is_ok()
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:7451", "[::1]:7451", "[::1]"] {
            assert!(asked(HERE, false, &[("host", host)]), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "127.0.0.2",
            "::1",
            "[::2]",
            "localhost:x",
            "localhost:80:80",
            "[localhost]",
        ] {
            assert!(!asked(HERE, false, &[("host", host)]), "{host}");
        }
        assert!(asked(Door::Network, false, &[("host", "gpu1:7450")]), "TLS has names of its own");
    }

    #[test]
    fn other_pages_are_kept_out() {
        let host = ("host", "localhost:7451");
        assert!(asked(HERE, false, &[host, ("origin", "http://localhost:7451")]));
        for origin in
            ["http://localhost:9", "https://localhost:7451", "null", "http://evil.example", ""]
        {
            assert!(!asked(HERE, false, &[host, ("origin", origin)]), "{origin}");
        }
        for site in ["cross-site", "same-site", "odd"] {
            assert!(!asked(HERE, false, &[host, ("sec-fetch-site", site)]), "{site}");
            let link = [host, ("sec-fetch-site", site), ("sec-fetch-mode", "navigate")];
            assert!(asked(HERE, true, &link), "a link leads to the page");
            assert!(!asked(HERE, false, &link), "and to nothing else");
        }
        assert!(asked(HERE, false, &[host, ("sec-fetch-site", "same-origin")]));
    }
}
