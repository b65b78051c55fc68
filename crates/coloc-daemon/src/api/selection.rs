//! Which tasks of a list are wanted, which of their fields, and how an answer is compressed.

use super::answer::Failure;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use coloc_api::request::ListRequest;
use coloc_api::view::TaskView;
use coloc_model::TaskState;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::StreamExt as _;
use std::io::Write as _;

/// Which tasks are wanted, and which of their fields.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Selection {
    /// Only in these states.
    pub(super) states: Option<Vec<TaskState>>,
    /// At most so many.
    pub(super) limit: Option<usize>,
    /// Only these fields.
    pub(super) fields: Option<Vec<String>>,
}

fn wrong(what: String) -> Failure {
    Failure::Malformed(StatusCode::BAD_REQUEST, what)
}

impl Selection {
    pub(super) fn of(request: &ListRequest) -> Result<Self, Failure> {
        let state = |name: &str| {
            let all = || TaskState::ALL.map(TaskState::name).join(", ");
            TaskState::named(name)
                .ok_or_else(|| wrong(format!("{name:?} is no state: {} are", all())))
        };
        let states = request.state.as_deref().map(|names| names.split(',').map(state).collect());
        let fields = request.fields.as_deref().map(fields).transpose()?;
        let limit = request.limit.map(|limit| limit as usize);
        if limit == Some(0) {
            return Err(wrong("`limit` is at least 1".to_owned()));
        }
        Ok(Selection { states: states.transpose()?, limit, fields })
    }

    pub(super) fn has(&self, state: TaskState) -> bool {
        self.states.as_ref().is_none_or(|states| states.contains(&state))
    }

    /// A task with the fields that are wanted, as JSON.
    pub(super) fn write<T: serde::Serialize>(
        &self,
        text: &mut Vec<u8>,
        task: &TaskView<T>,
    ) -> serde_json::Result<()> {
        let Some(fields) = &self.fields else { return serde_json::to_writer(text, task) };
        let mut value = serde_json::to_value(task)?;
        if let Some(all) = value.as_object_mut() {
            all.retain(|name, _| fields.contains(name));
        }
        serde_json::to_writer(text, &value)
    }
}

/// The fields of a task that a list names.
fn fields(names: &str) -> Result<Vec<String>, Failure> {
    let known = serde_json::to_value(TaskView::<String>::default()).unwrap_or_default();
    let field = |name: &str| match known.get(name) {
        Some(_) => Ok(name.to_owned()),
        None => {
            Err(wrong(format!("a task has no field {name:?}: see TaskView in GET /openapi.json")))
        }
    };
    names.split(',').map(field).collect()
}

/// An answer that is compressed as it is sent.
pub(super) fn compressed(body: Body) -> Body {
    let packer = GzEncoder::new(Vec::new(), Compression::fast());
    let parts = body.into_data_stream().map(Some).chain(futures_util::stream::iter([None]));
    let packed = parts.scan(Some(packer), |packer, part| {
        let packed = pack(packer, part);
        std::future::ready(Some(packed))
    });
    Body::from_stream(packed)
}

fn pack(
    packer: &mut Option<GzEncoder<Vec<u8>>>,
    part: Option<Result<Bytes, axum::Error>>,
) -> Result<Bytes, axum::Error> {
    let gone = || axum::Error::new(std::io::Error::other("the answer has ended"));
    match part {
        Some(part) => {
            let writer = packer.as_mut().ok_or_else(gone)?;
            writer.write_all(&part?).map_err(axum::Error::new)?;
            Ok(Bytes::from(std::mem::take(writer.get_mut())))
        }
        None => {
            let rest = packer.take().ok_or_else(gone)?.finish();
            rest.map(Bytes::from).map_err(axum::Error::new)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn what_makes_no_sense_is_refused() {
        let request = |state: Option<&str>, fields: Option<&str>, limit| ListRequest {
            state: state.map(str::to_owned),
            fields: fields.map(str::to_owned),
            limit,
            ..ListRequest::default()
        };
        let fine = Selection::of(&request(Some("pending,running"), Some("id,state"), Some(5)));
        let fine = fine.expect("it makes sense");
        assert!(fine.has(TaskState::Running) && !fine.has(TaskState::Failed));
        let mut text = Vec::new();
        fine.write(&mut text, &TaskView::<String>::default()).expect("JSON");
        assert_eq!(text, br#"{"id":0,"state":"pending"}"#);
        assert!(Selection::of(&request(Some("asleep"), None, None)).is_err());
        assert!(Selection::of(&request(None, Some("colour"), None)).is_err());
        assert!(Selection::of(&request(None, None, Some(0))).is_err());
    }

    #[tokio::test]
    async fn what_is_compressed_is_the_same() {
        let parts = ["a".repeat(5000), String::new(), "b".repeat(7)];
        let stream = futures_util::stream::iter(parts.clone().map(Ok::<_, axum::Error>));
        let body = compressed(Body::from_stream(stream));
        let packed = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
        let mut plain = String::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut plain).expect("gzip");
        assert_eq!(plain, parts.concat());
        assert!(packed.len() < 200);
    }
}
