//! Lists of tasks. The tasks that have not ended are streamed page by page: a list may be long, and its reader slow.
//!
//! An answer is one JSON document with a row a line; for `accept: text/tab-separated-values` it is a table.

use super::answer::Failure;
use super::request::Query;
use super::selection::{Selection, compressed};
use super::web::accepts_gzip;
use super::{Peer, State};
use crate::journal::{Journal, JournalError};
use crate::owner::{Command, Page, PageRequest, whole_view};
use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use coloc_api::moment::Moment;
use coloc_api::request::ListRequest;
use coloc_api::view::TaskView;
use coloc_api::{LINES, SCHEMA, lines};
use coloc_model::TaskId;
use futures_util::stream;
use futures_util::{StreamExt as _, TryStreamExt as _};

/// The most ended tasks in one answer.
const MOST_ENDED: u32 = 100_000;

pub(super) async fn list(
    api: State,
    peer: Peer,
    headers: HeaderMap,
    Query(mut request): Query<ListRequest>,
) -> Result<Response, Failure> {
    if request.mine {
        request.user = Some(crate::users::name(peer.caller().uid));
    }
    let lines = headers.get(ACCEPT).is_some_and(|accept| accept == LINES);
    let form = if lines { Form::Lines } else { Form::Json };
    let selection = Selection::of(&request)?;
    let pack = accepts_gzip(&headers) && form == Form::Json;
    if request.all {
        let rows = all(api, peer, request, form, selection).await?;
        return Ok(answer(form, Body::from(rows), pack));
    }
    let first = PageRequest {
        from: TaskId(request.after.map_or(0, |after| after.saturating_add(1))),
        user: request.user,
        states: selection.states.clone(),
        most: selection.limit.unwrap_or(usize::MAX),
    };
    // The first page is waited for, so that a refusal is one.
    let page = api.ask(peer.caller(), |reply| Command::Page(first.clone(), reply)).await?;
    let mut begun = false;
    let pages = pages(api, peer, first, page);
    let pages = pages.map(move |page| form.write(page?, &mut begun, &selection).map(Bytes::from));
    Ok(answer(form, Body::from_stream(pages), pack))
}

/// How a list is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// One JSON document with a row a line.
    Json,
    /// Tab-separated values, with a header.
    Lines,
}

impl Form {
    /// Rows of a table in this form; `begun` says whether there were rows before.
    fn write(
        self,
        rows: Vec<u8>,
        begun: &mut bool,
        selection: &Selection,
    ) -> Result<Vec<u8>, Failure> {
        if self == Form::Lines {
            return Ok(rows);
        }
        let mut text = Vec::with_capacity(rows.len() * 4);
        for line in rows.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let view = lines::read(line).map_err(|error| Failure::Unexpected(error.to_string()))?;
            text.extend_from_slice(if std::mem::replace(begun, true) { b",\n" } else { b"" });
            selection
                .write(&mut text, &view)
                .map_err(|error| Failure::Unexpected(error.to_string()))?;
        }
        Ok(text)
    }
}

fn answer(form: Form, rows: Body, pack: bool) -> Response {
    let (kind, head, tail) = match form {
        Form::Lines => (LINES, format!("{}\n", lines::HEADER), ""),
        Form::Json => ("application/json", format!("{{\"schema\":{SCHEMA},\"tasks\":[\n"), "\n]}"),
    };
    let part = |text: String| stream::iter([Ok::<_, axum::Error>(Bytes::from(text))]);
    let body = part(head).chain(rows.into_data_stream()).chain(part(tail.to_owned()));
    let body = Body::from_stream(body);
    let mut response = if pack { compressed(body) } else { body }.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    if pack {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// The rows of a page, and of those after it. While one is sent, the owner writes the next.
fn pages(
    api: State,
    peer: Peer,
    request: PageRequest,
    first: Page,
) -> impl futures_core::Stream<Item = Result<Vec<u8>, Failure>> {
    let mut left = request.most;
    let mut ask = move |page: &Page| {
        left -= page.written;
        let request = PageRequest { from: page.next?, most: left, ..request.clone() };
        Some(api.begin(peer.caller(), |reply| Command::Page(request, reply)))
    };
    let rest = stream::try_unfold((ask(&first), ask), |(asked, mut ask)| async move {
        let Some(asked) = asked else { return Ok(None) };
        let page: Page = asked?.await?;
        let next = ask(&page);
        Ok(Some((page.rows, (next, ask))))
    });
    stream::iter([Ok(first.rows)]).chain(rest.into_stream())
}

/// Ended tasks are on the disk, the others with the owner.
async fn all(
    api: State,
    peer: Peer,
    request: ListRequest,
    form: Form,
    selection: Selection,
) -> Result<Vec<u8>, Failure> {
    let permit = api.heavy_requests.take(peer.caller().uid).await?;
    let mut tasks = api.ask(peer.caller(), Command::List).await?;
    let since = Moment((request.since_s.max(0.0) * 1000.0) as u64);
    let write = move |journal: &Journal| {
        tasks.extend(ended(journal, since)?);
        if let Some(user) = request.user {
            tasks.retain(|task| task.user == user);
        }
        tasks.sort_by_key(|task| task.id);
        // A task may have ended between the two looks.
        tasks.dedup_by_key(|task| task.id);
        let after = request.after.unwrap_or(0);
        tasks.retain(|task| task.id > after && selection.has(task.state));
        tasks.truncate(selection.limit.unwrap_or(usize::MAX));
        let mut rows = Vec::new();
        tasks.iter().for_each(|task| lines::write(&mut rows, task));
        Ok(form.write(rows, &mut false, &selection))
    };
    let rows = api.read(write).await;
    drop(permit);
    rows?
}

fn ended(journal: &Journal, since: Moment) -> Result<Vec<TaskView>, JournalError> {
    let mut specs = rustc_hash::FxHashMap::default();
    let mut views = Vec::new();
    for record in journal.ended(since, MOST_ENDED)? {
        let spec = journal.once_of(record.spec, &mut specs, |spec| spec)?;
        views.push(whole_view(&record, spec));
    }
    Ok(views)
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_api::view::WAITING;

    #[test]
    fn both_forms_say_the_same() {
        let plain = TaskView { reason: Some(WAITING.to_owned()), ..TaskView::default() };
        let rich = TaskView {
            id: 7,
            reason: Some("held\n\"so\"".to_owned()),
            gpu_ids: vec![0, 3],
            array_id: Some(1),
            array_index: Some(0),
            started_s: Some(0.0),
            priority: -3,
            peak_bytes: 5,
            exit_code: Some(0),
            ..TaskView::default()
        };
        let all = [plain, rich];
        let (mut json, mut begun) = (Vec::new(), false);
        for task in &all {
            let mut row = Vec::new();
            lines::write(&mut row, task);
            json.extend(Form::Json.write(row, &mut begun, &Selection::default()).unwrap());
            json.extend(Form::Json.write(Vec::new(), &mut begun, &Selection::default()).unwrap());
        }
        let json = String::from_utf8(json).unwrap();
        let read: Vec<TaskView> = serde_json::from_str(&format!("[{json}]")).unwrap();
        assert_eq!(read, all);
    }
}
