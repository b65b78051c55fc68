//! Making the page: the owner copies its numbers, and a thread beside it writes them out.

use super::api_counters::ApiCounters;
use super::form::{OPEN_METRICS, TEXT, older, wants_open_metrics};
use super::histogram::Histogram;
use super::writer::Writer;
use super::{counters, device, series};
use crate::hardware::Hardware;
use crate::owner::Metrics;
use crate::record::Uid;
use coloc_api::moment::Moment;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A page that is younger is given again: however many ask, the owner is asked once a second.
const AGE: Duration = Duration::from_secs(1);

/// A device as its vendor calls it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Board {
    /// The board's name, such as `NVIDIA A100-SXM4-40GB`.
    pub name: String,
    /// Its address on the bus.
    pub address: String,
}

/// Makes the page.
#[derive(Debug)]
pub struct Exporter {
    boards: Vec<Board>,
    emulated: bool,
    began: Moment,
    host: String,
    journal: PathBuf,
    pub(crate) requests: ApiCounters,
    last: tokio::sync::Mutex<Option<(Instant, Arc<str>)>>,
}

/// What is told of the daemon by parts of it that are not the owner.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) emulated: bool,
    pub(super) began_s: f64,
    pub(super) journal_bytes: Option<u64>,
    pub(super) requests: Vec<(&'static str, u64)>,
    pub(super) request_seconds: Histogram,
    pub(super) listeners: usize,
}

/// Names of users, asked of the system once a page.
#[derive(Debug)]
pub(super) struct Names {
    known: BTreeMap<Uid, String>,
    has_room: bool,
}

impl Names {
    pub(super) fn new(seen: &Metrics, name: impl Fn(Uid) -> String) -> Self {
        let counted = seen.counters.users().filter_map(|(user, _)| user);
        let waiting = seen.tasks.keys().map(|(user, _)| *user);
        let users = counted.chain(waiting).chain(seen.on_gpus.iter().map(|task| task.user));
        let known: BTreeMap<Uid, String> = users.map(|user| (user, name(user))).collect();
        Names { has_room: known.len() <= counters::MOST_USERS, known }
    }

    pub(super) fn of(&self, user: Uid) -> String {
        self.known.get(&user).cloned().unwrap_or_else(|| user.0.to_string())
    }

    /// Every user can have series of their own.
    pub(super) fn has_room(&self) -> bool {
        self.has_room
    }
}

impl Exporter {
    pub(crate) fn new(hardware: &Hardware, journal: PathBuf) -> Self {
        let boards = hardware.gpus.boards.iter().zip(&hardware.gpus.addresses);
        let board = |(name, address): (&String, &String)| Board {
            name: name.clone(),
            address: address.clone(),
        };
        let (boards, emulated) = (boards.map(board).collect(), hardware.is_emulated());
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let (began, requests) = (Moment::now(), ApiCounters::default());
        Exporter { boards, emulated, began, host, journal, requests, last: Default::default() }
    }

    /// The page with its media type, in the form that is asked for. `ask` asks the owner, if the last page is too old.
    pub(crate) async fn page<E>(
        self: &Arc<Self>,
        accept: &str,
        listeners: usize,
        ask: impl Future<Output = Result<Box<Metrics>, E>>,
    ) -> Result<(&'static str, String), E> {
        let mut last = self.last.lock().await;
        let page = match &*last {
            Some((at, page)) if at.elapsed() < AGE => page.clone(),
            _ => {
                let seen = ask.await?;
                let exporter = self.clone();
                let write = move || exporter.write(*seen, listeners);
                let page: Arc<str> =
                    tokio::task::spawn_blocking(write).await.unwrap_or_default().into();
                *last = Some((Instant::now(), page.clone()));
                page
            }
        };
        drop(last);
        Ok(match wants_open_metrics(accept) {
            true => (OPEN_METRICS, page.to_string()),
            false => (TEXT, older(&page)),
        })
    }

    fn write(&self, seen: Metrics, listeners: usize) -> String {
        let (requests, request_seconds) = self.requests.read();
        let edge = Edge {
            emulated: self.emulated,
            began_s: self.began.secs(),
            journal_bytes: std::fs::metadata(&self.journal).ok().map(|meta| meta.len()),
            requests,
            request_seconds,
            listeners,
        };
        let names = Names::new(&seen, crate::users::name);
        render(seen, edge, names, self.boards.clone(), self.host.clone())
    }
}

/// One page of the crate's encoder.
#[derive(Debug)]
struct Page {
    seen: Metrics,
    edge: Edge,
    names: Names,
    boards: Vec<Board>,
    host: String,
}

impl Collector for Page {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut writer = Writer(encoder);
        device::write(&mut writer, &self.seen.gpus, &self.boards, &self.host)?;
        series::write(&mut writer, &self.seen, &self.edge, &self.names)
    }
}

/// All series, in OpenMetrics' form.
pub(super) fn render(
    seen: Metrics,
    edge: Edge,
    names: Names,
    boards: Vec<Board>,
    host: String,
) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Page { seen, edge, names, boards, host }));
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}
