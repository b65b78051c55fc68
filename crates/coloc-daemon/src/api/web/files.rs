//! The built page, embedded compressed as it was built (`web-dist/`).

use axum::body::Bytes;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::io::Read as _;
use std::sync::OnceLock;

/// What the build found.
const EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

#[derive(Deserialize)]
struct Manifest {
    files: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    path: String,
    file: String,
    #[serde(rename = "type")]
    kind: String,
    bytes: u64,
    sha256: String,
    immutable: bool,
}

/// A file of the page.
struct PageFile {
    compressed: &'static [u8],
    kind: HeaderValue,
    etag: HeaderValue,
    immutable: bool,
    length: u64,
}

fn files() -> &'static FxHashMap<String, PageFile> {
    static FILES: OnceLock<FxHashMap<String, PageFile>> = OnceLock::new();
    FILES.get_or_init(|| {
        let find = |name: &str| EMBEDDED.iter().find(|(file, _)| *file == name).map(|(_, b)| *b);
        let manifest = find("manifest.json").and_then(|text| serde_json::from_slice(text).ok());
        let entries = manifest.map_or(Vec::new(), |manifest: Manifest| manifest.files);
        let file = |entry: Entry| {
            let file = PageFile {
                compressed: find(&entry.file)?,
                kind: entry.kind.parse().ok()?,
                etag: format!("\"{}\"", entry.sha256).parse().ok()?,
                immutable: entry.immutable,
                length: entry.bytes,
            };
            Some((entry.path, file))
        };
        entries.into_iter().filter_map(file).collect()
    })
}

/// The file at a path; `None` if there is none.
pub(super) fn at(path: &str, headers: &HeaderMap) -> Option<Response> {
    let path = if path == "/" { "/index.html" } else { path };
    let file = files().get(path)?;
    let age = if file.immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    let mut head = HeaderMap::new();
    head.insert(CONTENT_TYPE, file.kind.clone());
    head.insert(ETAG, file.etag.clone());
    head.insert(CACHE_CONTROL, HeaderValue::from_static(age));
    head.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if headers.get(IF_NONE_MATCH) == Some(&file.etag) {
        return Some((StatusCode::NOT_MODIFIED, head).into_response());
    }
    if accepts_gzip(headers) {
        head.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        return Some((head, Bytes::from_static(file.compressed)).into_response());
    }
    let mut plain = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(file.compressed).take(file.length);
    match reader.read_to_end(&mut plain) {
        Ok(_) => Some((head, plain).into_response()),
        Err(_) => Some(StatusCode::INTERNAL_SERVER_ERROR.into_response()),
    }
}

/// The client takes compressed answers.
pub(in crate::api) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let refused = parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        gzip && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::digest::{SHA256, digest};

    #[test]
    fn every_embedded_file_is_what_the_manifest_says() {
        let listed = files();
        assert!(listed.contains_key("/index.html"), "the page is built");
        assert_eq!(listed.len(), EMBEDDED.len() - 1, "each file is listed");
        for (path, file) in listed {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(file.compressed).read_to_end(&mut plain).unwrap();
            let hash: String =
                digest(&SHA256, &plain).as_ref().iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(file.etag.to_str().unwrap(), format!("\"{hash}\""), "{path}");
            assert_eq!(file.length, plain.len() as u64, "{path}");
        }
    }

    #[test]
    fn compression_is_asked_for() {
        let accepts = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, value.parse().unwrap());
            accepts_gzip(&headers)
        };
        assert!(accepts("gzip, deflate, br") && accepts("br;q=1, GZIP;q=0.5"));
        assert!(!accepts("br") && !accepts("gzip;q=0") && !accepts_gzip(&HeaderMap::new()));
    }
}
