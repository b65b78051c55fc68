//! Where a task's output goes.

use crate::executor::local::run::RunDir;
use crate::record::Record;
use coloc_api::spec::TaskSpec;
use coloc_api::text::RawText;
use std::ffi::OsString;
use std::path::PathBuf;

/// Where a task's output goes: to our log, unless its user wants it elsewhere.
pub fn output_of(run: &RunDir, record: &Record, spec: &TaskSpec) -> PathBuf {
    spec.output.as_ref().map_or_else(|| run.log(), |pattern| place(pattern, record, spec))
}

/// Where its last words are.
pub fn last_words_of(run: &RunDir, record: &Record, spec: &TaskSpec) -> PathBuf {
    let errors = spec.errors.as_ref().map(|pattern| place(pattern, record, spec));
    errors.unwrap_or_else(|| output_of(run, record, spec))
}

fn place(pattern: &RawText, record: &Record, spec: &TaskSpec) -> PathBuf {
    spec.directory.as_path().join(expand(pattern, record, &spec.name).as_path())
}

/// `%j` is the task's id, `%A` that of its array, `%a` its number there, `%x` its name, `%u` its user, `%N` this machine.
pub(super) fn expand(path: &RawText, record: &Record, name: &str) -> RawText {
    let mut expanded = Vec::new();
    let mut bytes = path.as_bytes().iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            expanded.push(byte);
            continue;
        }
        let place = record.array;
        match bytes.next() {
            Some(b'j') => expanded.extend(record.id.to_string().bytes()),
            Some(b'A') => {
                let array = place.map_or(record.id, |place| place.array);
                expanded.extend(array.to_string().bytes());
            }
            Some(b'a') => expanded.extend(place.map_or(0, |p| p.index).to_string().bytes()),
            // A name must not lead elsewhere.
            Some(b'x') => expanded.extend(name.replace('/', "_").bytes()),
            Some(b'u') => {
                expanded.extend(crate::users::name(record.owner).replace('/', "_").bytes())
            }
            Some(b'N') => {
                let system = rustix::system::uname();
                let name = system.nodename().to_bytes();
                expanded.extend(name.split(|&byte| byte == b'.').next().unwrap_or(name));
            }
            Some(b'%') => expanded.push(b'%'),
            Some(other) => expanded.extend([b'%', other]),
            None => expanded.push(b'%'),
        }
    }
    use std::os::unix::ffi::OsStringExt as _;
    OsString::from_vec(expanded).into()
}
