//! What the owner tells the world, encoded once for all listeners: changes of tasks, decisions and how the daemon is, with numbers and
//! the last of them kept for listeners that come back; and what the monitor sees, of which only the newest counts.

use axum::body::Bytes;
use coloc_api::SCHEMA;
use coloc_api::moment::Moment;
use coloc_api::view::{DecisionNews, Hello, SampleFrame, StatusNews, TaskView};
use coloc_model::TaskId;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, watch};

/// Events that are kept for listeners that come back.
pub(crate) const KEPT: usize = 4096;
/// And the most that they may take.
const KEPT_BYTES: usize = 4 << 20;
/// Events that a listener may lag behind.
const LAG: usize = 1024;
/// After the last listener left, events are kept for so long: it may come back.
const LINGER: Duration = Duration::from_secs(60);

/// What an event is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    /// A task changed.
    Task,
    /// The monitor looked.
    Sample,
    /// How the daemon is has changed.
    Status,
    /// A task was decided about.
    Decision,
    /// More happened than is told one by one.
    Missed,
}

impl Kind {
    /// Its name on the wire.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Task => "task",
            Kind::Sample => "sample",
            Kind::Status => "status",
            Kind::Decision => "decision",
            Kind::Missed => "missed",
        }
    }

    /// The kind of a name that listeners may ask for.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [Kind::Task, Kind::Sample, Kind::Status, Kind::Decision];
        all.into_iter().find(|kind| kind.name() == name)
    }
}

/// An event as it goes over the wire.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Told {
    /// Its number.
    pub(crate) seq: u64,
    /// What it is about.
    pub(crate) kind: Kind,
    /// The task that is no longer as it was, if it says so.
    pub(crate) task: Option<TaskId>,
    /// That task has ended.
    pub(crate) ended: bool,
    /// The event as the stream has it.
    pub(crate) text: Bytes,
}

/// What listeners hear, and heard.
#[derive(Debug)]
pub struct News {
    epoch: String,
    kept: Mutex<Kept>,
    live: broadcast::Sender<Arc<Told>>,
    samples: watch::Sender<Bytes>,
}

#[derive(Default, Debug)]
struct Kept {
    seq: u64,
    ring: VecDeque<Arc<Told>>,
    /// A listener came since it was last asked whether one hears: it may be gone already, and come back.
    came: bool,
    bytes: usize,
    /// When a listener was last there.
    heard: Option<Instant>,
    /// Events that were encoded.
    #[cfg(test)]
    encoded: usize,
}

/// What a listener hears first, and what it hears afterwards.
pub(crate) struct Heard {
    /// Who speaks.
    pub(crate) hello: Hello,
    /// What it missed since it was last there; `None` if that cannot be told.
    pub(crate) replay: Option<Vec<Arc<Told>>>,
    /// What happens from now on.
    pub(crate) live: broadcast::Receiver<Arc<Told>>,
}

fn data(value: &impl Serialize) -> String {
    // Views have no keys that are not strings, so this cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

impl News {
    /// For a run of the daemon of this name.
    pub fn new(epoch: String) -> Arc<Self> {
        let (live, samples) = (broadcast::channel(LAG).0, watch::channel(Bytes::new()).0);
        Arc::new(News { epoch, kept: Mutex::default(), live, samples })
    }

    /// Names this run of the daemon.
    pub fn epoch(&self) -> &str {
        &self.epoch
    }

    /// The last event's number.
    pub fn seq(&self) -> u64 {
        self.kept().seq
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // No thread leaves it half changed.
        self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A listener is there, or was a moment ago.
    pub(crate) fn is_heard(&self, now: Instant) -> bool {
        let mut kept = self.kept();
        if std::mem::take(&mut kept.came) || self.live.receiver_count() > 0 {
            kept.heard = Some(now);
        }
        kept.heard.is_some_and(|heard| now.saturating_duration_since(heard) < LINGER)
    }

    /// A listener wants to see what the monitor sees.
    pub(crate) fn wants_samples(&self) -> bool {
        self.samples.receiver_count() > 0
    }

    /// A task is like this now.
    pub(crate) fn task(&self, view: &TaskView) {
        self.tell(Kind::Task, Some(view), &data(view));
    }

    /// How the daemon is now.
    pub(crate) fn status(&self, status: &StatusNews) {
        self.tell(Kind::Status, None, &data(status));
    }

    /// What was decided.
    pub(crate) fn decision(&self, decision: &DecisionNews) {
        self.tell(Kind::Decision, None, &data(decision));
    }

    /// So much happened that listeners must ask anew. What was kept is of no use any more.
    pub(crate) fn missed(&self) {
        {
            let mut kept = self.kept();
            kept.ring.clear();
            kept.bytes = 0;
            kept.seq += 1;
        }
        self.tell(Kind::Missed, None, "{}");
    }

    /// Something happened that no listener hears of.
    pub(crate) fn skip(&self) {
        let mut kept = self.kept();
        kept.ring.clear();
        kept.bytes = 0;
        kept.seq += 1;
    }

    /// What the monitor saw. It has no number: only the newest counts.
    pub(crate) fn sample(&self, frame: &SampleFrame) {
        let text = format!("event: {}\ndata: {}\n\n", Kind::Sample.name(), data(frame));
        self.samples.send_replace(Bytes::from(text));
    }

    fn tell(&self, kind: Kind, about: Option<&TaskView>, data: &str) {
        let mut kept = self.kept();
        kept.seq += 1;
        let seq = kept.seq;
        let text = format!("id: {}.{seq}\nevent: {}\ndata: {data}\n\n", self.epoch, kind.name());
        let task = about.map(|view| TaskId(view.id));
        let ended = about.is_some_and(|view| view.state.is_over());
        let told = Arc::new(Told { seq, kind, task, ended, text: Bytes::from(text) });
        #[cfg(test)]
        {
            kept.encoded += 1;
        }
        kept.bytes += told.text.len();
        kept.ring.push_back(told.clone());
        while kept.ring.len() > KEPT || kept.bytes > KEPT_BYTES {
            let Some(oldest) = kept.ring.pop_front() else { break };
            kept.bytes -= oldest.text.len();
        }
        // Sent before the lock is given back: a listener that comes meanwhile hears it once.
        let _ = self.live.send(told);
    }

    /// A listener comes, or comes back after the event of this id.
    pub(crate) fn listen(&self, now: Moment, last: Option<&str>) -> Heard {
        let mut kept = self.kept();
        kept.came = true;
        let live = self.live.subscribe();
        let (epoch, seq) = (self.epoch.clone(), kept.seq);
        let hello = Hello { epoch, seq, schema: SCHEMA, now_s: now.secs() };
        let replay = match last {
            None => Some(Vec::new()),
            Some(id) => self.since(&kept, id),
        };
        Heard { hello, replay, live }
    }

    /// What happened after an event; `None` if it is of another run, or too long ago.
    fn since(&self, kept: &Kept, id: &str) -> Option<Vec<Arc<Told>>> {
        let (epoch, seq) = id.rsplit_once('.')?;
        let seq = seq.parse::<u64>().ok().filter(|&seq| epoch == self.epoch && seq <= kept.seq)?;
        let after: Vec<_> = kept.ring.iter().filter(|told| told.seq > seq).cloned().collect();
        // All of them, or some were forgotten meanwhile.
        (after.len() as u64 == kept.seq - seq).then_some(after)
    }

    /// Listeners that are there.
    pub(crate) fn listeners(&self) -> usize {
        self.live.receiver_count()
    }

    /// Changes from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Told>> {
        self.live.subscribe()
    }

    /// What the monitor sees from now on.
    pub(crate) fn samples(&self) -> watch::Receiver<Bytes> {
        self.samples.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32) -> TaskView {
        TaskView { id, ..TaskView::default() }
    }

    fn numbers(heard: &Heard) -> Option<Vec<u64>> {
        let replay = heard.replay.as_ref()?;
        Some(replay.iter().map(|told| told.seq).collect())
    }

    #[test]
    fn a_listener_that_comes_back_hears_what_it_missed() {
        let news = News::new("e".to_owned());
        (1..=5).for_each(|id| news.task(&task(id)));
        let at = |id: &str| numbers(&news.listen(Moment(0), Some(id)));
        assert_eq!(at("e.3"), Some(vec![4, 5]));
        assert_eq!(at("e.5"), Some(vec![]));
        for wrong in ["e.6", "other.3", "3", "", "e.", "e.x"] {
            assert_eq!(at(wrong), None, "{wrong:?}");
        }
        assert_eq!(numbers(&news.listen(Moment(0), None)), Some(vec![]));
        assert_eq!(news.listen(Moment(2000), None).hello.seq, 5);
        news.skip();
        assert_eq!(at("e.5"), None, "something happened that was not kept");
    }

    #[test]
    fn what_is_kept_has_an_end_in_number_and_in_bytes() {
        let news = News::new("e".to_owned());
        (1..=KEPT as u32 + 10).for_each(|id| news.task(&task(id)));
        let at = |id: &str| numbers(&news.listen(Moment(0), Some(id))).map(|all| all.len());
        assert_eq!(at("e.9"), None, "too long ago");
        assert_eq!(at("e.10"), Some(KEPT));
        let large = TaskView { name: "x".repeat(KEPT_BYTES / 3), ..task(1) };
        (0..4).for_each(|_| news.task(&large));
        let kept = news.kept();
        assert!(kept.bytes <= KEPT_BYTES && kept.ring.len() == 2, "{}", kept.ring.len());
    }

    #[test]
    fn twenty_listeners_share_one_encoding() {
        let news = News::new("e".to_owned());
        let mut all: Vec<_> = (0..20).map(|_| news.subscribe()).collect();
        let mut eyes: Vec<_> = (0..20).map(|_| news.samples()).collect();
        news.task(&task(1));
        news.sample(&SampleFrame::default());
        let texts: Vec<_> =
            all.iter_mut().map(|one| one.try_recv().unwrap().text.as_ptr()).collect();
        assert!(texts.iter().all(|text| *text == texts[0]), "one text in memory");
        let frames: Vec<_> = eyes.iter_mut().map(|one| one.borrow_and_update().as_ptr()).collect();
        assert!(frames.iter().all(|frame| *frame == frames[0]));
        assert_eq!(news.kept().encoded, 1);
    }

    #[test]
    fn nothing_is_told_when_no_listener_was_there_for_a_while() {
        let (news, now) = (News::new("e".to_owned()), Instant::now());
        assert!(!news.is_heard(now));
        let listener = news.subscribe();
        assert!(news.is_heard(now));
        drop(listener);
        assert!(news.is_heard(now + LINGER / 2), "it may come back");
        assert!(!news.is_heard(now + LINGER));
    }
}
