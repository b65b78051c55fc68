//! Lists of tasks. The tasks that have not ended are streamed page by page: a list may be long, and its reader slow.
//!
//! An answer is one JSON document with a row a line; for `accept: text/tab-separated-values` it is a table.

use super::answer::Failure;
use super::request::Query;
use super::tasks::view;
use super::{Peer, SCHEMA, State};
use crate::journal::{Journal, JournalError};
use crate::owner::{Answer, Command, Form, Page, PageRequest, Rows, TaskView};
use crate::record::Moment;
use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use coloc_model::TaskId;
use futures_util::stream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most ended tasks in one answer.
const MOST_ENDED: u32 = 100_000;
/// A row a line, with a header.
pub(crate) const LINES: &str = "text/tab-separated-values";

/// What a list is to have.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ListRequest {
    /// Ended tasks too.
    pub all: bool,
    /// Of those, only what ended since, in seconds since 1970.
    pub since_s: f64,
    /// Only this user's.
    pub user: Option<String>,
    /// Only the caller's.
    pub mine: bool,
}

pub(super) async fn list(
    desk: State,
    peer: Peer,
    headers: HeaderMap,
    Query(mut request): Query<ListRequest>,
) -> Result<Response, Failure> {
    if request.mine {
        request.user = Some(crate::users::name(peer.caller().uid));
    }
    let lines = headers.get(ACCEPT).is_some_and(|accept| accept == LINES);
    let form = if lines { Form::Lines } else { Form::Json };
    if request.all {
        return Ok(answer(form, Body::from(all(desk, peer, request, form).await?)));
    }
    let first = PageRequest { from: TaskId(0), user: request.user, form, begun: false };
    // The first page is waited for, so that a refusal is one.
    let page = page(desk.ask(peer.caller(), Command::Page(first.clone())).await?)?;
    Ok(answer(form, Body::from_stream(pages(desk, peer, first, page))))
}

fn answer(form: Form, rows: Body) -> Response {
    let (kind, body) = match form {
        Form::Lines => (LINES, rows),
        Form::Json => {
            let part = |text: String| stream::iter([Ok::<_, axum::Error>(Bytes::from(text))]);
            let head = part(format!("{{\"schema\":{SCHEMA},\"tasks\":[\n"));
            let rows = head.chain(rows.into_data_stream()).chain(part("\n]}".to_owned()));
            ("application/json", Body::from_stream(rows))
        }
    };
    ([(CONTENT_TYPE, HeaderValue::from_static(kind))], body).into_response()
}

/// A page, and those after it. While one is sent, the owner writes the next.
fn pages(
    desk: State,
    peer: Peer,
    request: PageRequest,
    first: Page,
) -> impl futures_core::Stream<Item = Result<Bytes, Failure>> {
    let ask = move |page: &Page, begun: bool| {
        let request = PageRequest { from: page.next?, begun, ..request.clone() };
        Some(desk.begin(peer.caller(), Command::Page(request)))
    };
    let begun = !first.text.is_empty();
    let next = ask(&first, begun);
    let state = (next, begun, ask);
    let rest = stream::try_unfold(state, |(asked, begun, ask)| async move {
        let Some(asked) = asked else { return Ok(None) };
        let page = page(asked?.await?)?;
        let begun = begun || !page.text.is_empty();
        let next = ask(&page, begun);
        Ok(Some((Bytes::from(page.text), (next, begun, ask))))
    });
    stream::iter([Ok(Bytes::from(first.text))]).chain(rest.into_stream())
}

fn page(answer: Answer) -> Result<Page, Failure> {
    match answer {
        Answer::Page(page) => Ok(page),
        other => Err(Failure::unexpected(other)),
    }
}

/// Ended tasks are on the disk, the others with the owner.
async fn all(
    desk: State,
    peer: Peer,
    request: ListRequest,
    form: Form,
) -> Result<Vec<u8>, Failure> {
    let Answer::Tasks(mut tasks) = desk.ask(peer.caller(), Command::List).await? else {
        return Err(Failure::Stopping);
    };
    let since = Moment((request.since_s.max(0.0) * 1000.0) as u64);
    let write = move |journal: &Journal| {
        tasks.extend(ended(journal, since)?);
        if let Some(user) = request.user {
            tasks.retain(|task| task.user == user);
        }
        tasks.sort_by_key(|task| task.id);
        // Somebody may have ended between the two looks.
        tasks.dedup_by_key(|task| task.id);
        Ok(Rows::of(form, &tasks))
    };
    desk.read(write).await
}

fn ended(journal: &Journal, since: Moment) -> Result<Vec<TaskView>, JournalError> {
    let mut specs = rustc_hash::FxHashMap::default();
    let mut views = Vec::new();
    for record in journal.ended(since, MOST_ENDED)? {
        let spec = match specs.entry(record.spec) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(journal.spec(record.spec)?)
            }
        };
        views.push(view(&record, spec));
    }
    Ok(views)
}
