//! A dcgm-exporter's page of metrics.

use super::super::Reading;
use super::Field;
use super::feed::{Entity, Feed, Measured};
use crate::device::Uuid;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// No page is longer: eight GPUs with every metric take about 50 kB.
const LONGEST_PAGE: u64 = 4 << 20;
const DEADLINE: Duration = Duration::from_secs(2);

/// Where an exporter listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    host: String,
    port: u16,
    path: String,
}

/// An address that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "cannot read {text:?} as an exporter's address; expected HOST:PORT or http://HOST:PORT/metrics"
)]
pub struct EndpointError {
    text: String,
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = || EndpointError { text: text.to_owned() };
        let rest = text.strip_prefix("http://").unwrap_or(text);
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, "/metrics"),
        };
        let (host, port) = authority.rsplit_once(':').ok_or_else(fail)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let clean = |text: &str| text.bytes().all(|b| b.is_ascii_graphic());
        if host.is_empty() || !clean(host) || !clean(path) {
            return Err(fail());
        }
        let port = port.parse().map_err(|_| fail())?;
        Ok(Endpoint { host: host.to_owned(), port, path: path.to_owned() })
    }
}

impl Endpoint {
    /// Fetches the page once.
    pub fn fetch(&self) -> Result<String, String> {
        let failed = |error: std::io::Error| format!("{}:{}: {error}", self.host, self.port);
        let mut addresses = (self.host.as_str(), self.port).to_socket_addrs().map_err(failed)?;
        let address = addresses.next().ok_or_else(|| format!("{}: no address", self.host))?;
        let mut stream = TcpStream::connect_timeout(&address, DEADLINE).map_err(failed)?;
        stream.set_read_timeout(Some(DEADLINE)).map_err(failed)?;
        stream.set_write_timeout(Some(DEADLINE)).map_err(failed)?;
        // HTTP/1.0 asks for the page in one piece, and for the connection to be closed behind it.
        let request = format!("GET {} HTTP/1.0\r\nHost: {}\r\n\r\n", self.path, self.host);
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut answer = Vec::new();
        stream.take(LONGEST_PAGE).read_to_end(&mut answer).map_err(failed)?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("the answer is no HTTP")?;
        let status = head.split_whitespace().nth(1).unwrap_or_default();
        if status != "200" {
            return Err(format!("{}:{} answers {status}", self.host, self.port));
        }
        Ok(body.to_owned())
    }
}

/// Scrapes an exporter every `period`.
pub fn exporter_feed(endpoint: Endpoint, period: Duration) -> Feed {
    Feed::run("dcgm-exporter", move |shared| {
        while !shared.stopped() {
            let now = Instant::now();
            for measured in parse_exposition(&endpoint.fetch()?) {
                shared.publish(measured, now);
            }
            shared.pause(period.saturating_sub(now.elapsed()));
        }
        Ok(())
    })
}

/// Reads the profiling metrics out of a page in Prometheus' text format; other lines are passed over.
pub fn parse_exposition(page: &str) -> Vec<Measured> {
    let mut all: Vec<Measured> = Vec::new();
    for (field, entity, value) in page.lines().filter_map(metric) {
        let known = all.iter().position(|measured| measured.entity == entity);
        let at = known.unwrap_or_else(|| {
            all.push(Measured { entity, reading: Reading::default() });
            all.len() - 1
        });
        all[at].reading.set_larger(field, value);
    }
    all.retain(|measured| !measured.reading.is_empty());
    all
}

/// One line: `NAME{label="value",…} NUMBER [TIMESTAMP]`.
fn metric(line: &str) -> Option<(Field, Entity, f64)> {
    let (name, rest) = line.split_once('{')?;
    let field = Field::by_metric(name.trim())?;
    let (labels, rest) = labels(rest)?;
    let value = rest.split_whitespace().next()?.parse().ok()?;
    let label =
        |name: &str| labels.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str());
    let uuid = label("UUID").or(label("uuid")).filter(|uuid| !uuid.is_empty());
    let entity = match (label("GPU_I_ID").filter(|id| !id.is_empty()), uuid, label("gpu")) {
        (Some(id), Some(uuid), _) => Entity::Instance(format!("{uuid}/{id}")),
        (Some(id), None, gpu) => Entity::Instance(format!("{}/{id}", gpu.unwrap_or("?"))),
        (None, Some(uuid), _) => Entity::Uuid(Uuid::new(uuid)),
        (None, None, gpu) => Entity::Index(gpu?.parse().ok()?),
    };
    Some((field, entity, value))
}

type Labels<'a> = Vec<(&'a str, String)>;

/// The labels up to the closing brace, and what follows it.
fn labels(mut rest: &str) -> Option<(Labels<'_>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (key, tail) = rest.split_once('=')?;
        let tail = tail.trim_start().strip_prefix('"')?;
        let mut value = String::new();
        let mut characters = tail.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.push((key.trim(), value));
        rest = &tail[end + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_model::Fraction;
    use proptest::prelude::*;
    use std::net::TcpListener;

    const PAGE: &str = r#"# HELP DCGM_FI_PROF_SM_ACTIVE The ratio of cycles an SM has at least 1 warp assigned.
# TYPE DCGM_FI_PROF_SM_ACTIVE gauge
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-aa",pci_bus_id="00000000:07:00.0",device="nvidia0",modelName="NVIDIA A100-SXM4-40GB",hostname="n\"1\\"} 0.170000
DCGM_FI_PROF_SM_ACTIVE{gpu="1",UUID="GPU-bb",device="nvidia1"} 9223372036854775794
DCGM_FI_PROF_DRAM_ACTIVE{gpu="0",UUID="GPU-aa",device="nvidia0"} 0.25 1700000000000
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-aa",GPU_I_PROFILE="1g.5gb",GPU_I_ID="9"} 0.5
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-aa"} 100
"#;

    #[test]
    fn a_page_is_read_and_blanks_are_dropped() {
        let all = parse_exposition(PAGE);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].entity, Entity::Uuid(Uuid::new("GPU-aa")));
        assert_eq!(all[0].reading.sm, Some(Fraction::new(0.17)));
        assert_eq!(all[0].reading.dram, Some(Fraction::new(0.25)));
        assert_eq!(all[1].entity, Entity::Instance("GPU-aa/9".to_owned()));
    }

    #[test]
    fn an_idle_part_does_not_hide_the_one_that_works() {
        let line = |value: &str| {
            format!("DCGM_FI_PROF_SM_ACTIVE{{gpu=\"0\",UUID=\"GPU-aa\",GPU_I_ID=\"1\"}} {value}\n")
        };
        for page in [line("0.9") + &line("0.0"), line("0.0") + &line("0.9")] {
            assert_eq!(parse_exposition(&page)[0].reading.sm, Some(Fraction::new(0.9)));
        }
    }

    #[test]
    fn addresses_are_read() {
        let endpoint: Endpoint = "http://localhost:9400/metrics".parse().expect("an address");
        assert_eq!((endpoint.host.as_str(), endpoint.port), ("localhost", 9400));
        assert_eq!("[::1]:9400".parse::<Endpoint>().map(|e| e.host), Ok("::1".to_owned()));
        for bad in ["", "localhost", "host:99999", ":9400", "ho st:1", "h:1/a b\r\nX: y"] {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_page_is_fetched_over_http() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let server = std::thread::spawn(move || {
            for answer in
                ["HTTP/1.0 200 OK\r\nX: y\r\n\r\n", "HTTP/1.0 503 Busy\r\n\r\n", "garbage"]
            {
                let (mut stream, _) = listener.accept().expect("a client");
                let mut request = [0; 1024];
                let _ = stream.read(&mut request);
                let _ = stream.write_all(answer.as_bytes());
                let _ = stream.write_all(PAGE.as_bytes());
            }
        });
        let endpoint: Endpoint = format!("127.0.0.1:{port}").parse().expect("an address");
        assert_eq!(endpoint.fetch().map(|page| parse_exposition(&page).len()), Ok(2));
        assert_eq!(endpoint.fetch(), Err(format!("127.0.0.1:{port} answers 503")));
        assert!(endpoint.fetch().is_err());
        server.join().expect("the server");
    }

    proptest! {
        #[test]
        fn hostile_pages_are_survived(text in "(DCGM_FI_PROF_SM_ACTIVE|[A-Z_]{0,9})?[{}=\"\\\\,a-zA-Z0-9. \n-]{0,60}") {
            let _ = parse_exposition(&text);
            let _ = parse_exposition(&format!("DCGM_FI_PROF_SM_ACTIVE{{{text}"));
            let _ = text.parse::<Endpoint>();
        }
    }
}
