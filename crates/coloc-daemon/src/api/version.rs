//! Daemon and client agree on the version of the schema: the path says which interface, a header which version of it.

use super::answer::Failure;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use coloc_api::{SCHEMA, SCHEMA_HEADER};

/// Refuses a client that needs a schema that is not known here. One that names none takes what is there.
pub(super) async fn agree(request: Request, next: Next) -> Response {
    let known = |wanted: &HeaderValue| {
        let version = wanted.to_str().ok().and_then(|text| text.parse::<u32>().ok());
        version.is_some_and(|version| version <= SCHEMA)
    };
    let unknown = request.headers().get(SCHEMA_HEADER).filter(|wanted| !known(wanted));
    let mut answer = match unknown {
        Some(wanted) => {
            Failure::Schema(String::from_utf8_lossy(wanted.as_bytes()).into_owned()).into_response()
        }
        None => next.run(request).await,
    };
    answer.headers_mut().insert(SCHEMA_HEADER, HeaderValue::from(SCHEMA));
    answer
}
