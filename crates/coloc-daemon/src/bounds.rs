//! What a user may ask for, and have, at most. Bounds that an administrator may want otherwise are settings.

use coloc_api::spec::TaskSpec;
use coloc_api::text::RawText;
use coloc_model::{Bytes, Millis};

/// The longest name, in bytes: of a task, an estimator.
pub const NAME: usize = 255;
/// The longest path, in bytes, as the kernel has it.
pub const PATH: usize = 4096;
/// The most tasks of one array.
pub const ARRAY: usize = 100_000;
/// The most tasks that one task waits for.
pub const DEPENDENCIES: usize = 1_000;
/// The most tasks that the tasks of an array wait for, counted for each.
pub const DEPENDENCIES_OF_ARRAY: usize = 1_000_000;
/// The most kinds of GPU that a task names.
pub const KINDS: usize = 16;
/// How often a task that fails is run again: each attempt has files of its own.
pub const RETRIES: u32 = 1_000;
/// The most copies of a task that srun starts, and the most CPUs and GPUs of each.
pub const COPIES: u32 = 4096;
/// The longest name of a kind, in bytes.
pub const KIND: usize = 64;
/// The most reasons to doubt an estimate.
pub const FLAGS: usize = 100;
/// The most memory that can be asked for.
pub const MEMORY: Bytes = Bytes(1 << 50);
/// The longest span of time: a hundred years.
pub const SPAN: Millis = Millis(100 * 366 * 86_400_000);
/// The last moment that a task can begin at, in milliseconds since 1970: the end of the year 9999.
pub const LAST_BEGIN: u64 = 253_402_300_799_999;
/// The longest key of a submission, in bytes.
pub const KEY: usize = 200;
/// The longest label of a token, in bytes.
pub const LABEL: usize = 100;
/// What a text takes besides its bytes.
const BESIDE: usize = 16;

/// What one user may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Connections at once.
    pub connections: usize,
    /// Bytes of requests that are being sent or dealt with.
    pub in_flight: Bytes,
    /// Tasks that have not ended.
    pub tasks: usize,
    /// Tasks among them that wait.
    pub pending: usize,
    /// Bytes of one submission.
    pub spec: Bytes,
    /// Tasks that one request names.
    pub ids: usize,
    /// Bytes of submissions that the journal keeps.
    pub journal: Bytes,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            connections: 64,
            in_flight: Bytes::from_mib(64),
            tasks: 100_000,
            pending: 100_000,
            spec: Bytes::from_mib(4),
            ids: 10_000,
            journal: Bytes::from_mib(1024),
        }
    }
}

/// What is too large in a submission.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "what each is about is what it says")]
pub enum BoundsError {
    #[error(
        "the submission has {has} with its environment and script, and may have {most}: pass less environment (--export), or keep large texts in files"
    )]
    Size { has: Bytes, most: Bytes },
    #[error(
        "a task waits for at most {DEPENDENCIES} others: the number of an array stands for all of its tasks"
    )]
    Dependencies,
    #[error(
        "{tasks} tasks that each wait for {each} others: at most {DEPENDENCIES_OF_ARRAY} together"
    )]
    DependenciesOfArray { tasks: usize, each: usize },
    #[error("a {what} of {length} bytes: at most {NAME}")]
    Name { what: &'static str, length: usize },
    #[error("an estimate has at most {FLAGS} flags, each of {PATH} bytes")]
    Flags,
    #[error("the {0} has more than {PATH} bytes")]
    LongPath(&'static str),
    #[error("the {0} has a zero byte")]
    ZeroByte(&'static str),
    #[error("memory is asked for, and estimated, up to {MEMORY}")]
    Memory,
    #[error("the SM activity of an estimate is from 0 to 1")]
    SmActivity,
    #[error("a span of time is a hundred years at most")]
    Span,
    #[error("a task is run again at most {RETRIES} times")]
    Retries,
    #[error("a task can begin until the end of the year 9999")]
    Begin,
    #[error("the number of a signal is from 1 to 64")]
    Signal,
}

/// The room that a submission takes, in memory and in the journal.
pub(crate) fn size(spec: &TaskSpec) -> u64 {
    let environment = spec.environment.iter().flat_map(|(name, value)| [name, value]);
    let paths = [&spec.output, &spec.errors, &spec.script].into_iter().flatten();
    let texts = spec.command.iter().chain(environment).chain(paths).chain([&spec.directory]);
    let texts = texts.map(|text| text.as_bytes().len() + BESIDE).sum::<usize>();
    let flags = spec.estimate_flags.iter().flat_map(|flag| [&flag.kind, &flag.detail]);
    let words = spec.gpu_kinds.iter().chain(flags).chain(&spec.estimator).chain([&spec.name]);
    let words = words.map(|word| word.len() + BESIDE).sum::<usize>();
    (texts + words + spec.after.len() * size_of::<coloc_api::spec::Dependency>()) as u64
}

/// Checks the size of everything that a submission of so many tasks has; says what is too large.
pub(crate) fn check(spec: &TaskSpec, tasks: usize, bounds: &Bounds) -> Result<(), BoundsError> {
    check_texts(spec)?;
    if size(spec) > bounds.spec.0 {
        return Err(BoundsError::Size { has: Bytes(size(spec)), most: bounds.spec });
    }
    if spec.after.len() > DEPENDENCIES {
        return Err(BoundsError::Dependencies);
    }
    if spec.after.len().saturating_mul(tasks) > DEPENDENCIES_OF_ARRAY {
        return Err(BoundsError::DependenciesOfArray { tasks, each: spec.after.len() });
    }
    check_numbers(spec)
}

fn check_texts(spec: &TaskSpec) -> Result<(), BoundsError> {
    let estimator = spec.estimator.as_deref().unwrap_or("");
    let kinds = spec.estimate_flags.iter().map(|flag| flag.kind.as_str());
    let names = [("name", spec.name.as_str()), ("estimator's name", estimator)];
    for (what, name) in names.into_iter().chain(kinds.map(|kind| ("kind of flag", kind))) {
        if name.len() > NAME {
            return Err(BoundsError::Name { what, length: name.len() });
        }
    }
    let flags = &spec.estimate_flags;
    if flags.len() > FLAGS || flags.iter().any(|flag| flag.detail.len() > PATH) {
        return Err(BoundsError::Flags);
    }
    let length = |text: &RawText| text.as_bytes().len();
    let paths = [
        ("working directory", Some(&spec.directory)),
        ("path for the output", spec.output.as_ref()),
        ("path for the errors", spec.errors.as_ref()),
    ];
    for (what, path) in paths {
        if path.is_some_and(|path| length(path) > PATH) {
            return Err(BoundsError::LongPath(what));
        }
        if path.is_some_and(|path| path.as_bytes().contains(&0)) {
            return Err(BoundsError::ZeroByte(what));
        }
    }
    Ok(())
}

fn check_numbers(spec: &TaskSpec) -> Result<(), BoundsError> {
    let estimated = spec.estimate.iter().flat_map(|estimate| [estimate.peak, estimate.bound]);
    let replayed = spec.replayed.iter().map(|replayed| replayed.allocator);
    let mut sizes = estimated.chain(replayed).chain(spec.gpu_memory).chain(spec.host_memory);
    if sizes.any(|size| size > MEMORY) {
        return Err(BoundsError::Memory);
    }
    if spec.estimate.and_then(|e| e.sm).is_some_and(|sm| !(0.0..=1.0).contains(&sm.get())) {
        return Err(BoundsError::SmActivity);
    }
    let before = spec.warning.map(|warning| warning.before);
    let delays = spec.after.iter().map(|dependency| dependency.delay);
    let mut spans = delays.chain(spec.time_limit).chain(spec.idle_timeout).chain(before);
    if spans.any(|span| span > SPAN) {
        return Err(BoundsError::Span);
    }
    if spec.retries > RETRIES {
        return Err(BoundsError::Retries);
    }
    if spec.begin_ms.is_some_and(|begin| begin > LAST_BEGIN) {
        return Err(BoundsError::Begin);
    }
    if spec.warning.is_some_and(|warning| !(1..=64).contains(&warning.signal)) {
        return Err(BoundsError::Signal);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::spec;
    use coloc_api::estimated::EstimateFlag;
    use coloc_api::spec::{Dependency, DependencyKind, Warning};
    use coloc_model::{Estimate, TaskId};

    #[test]
    fn every_field_has_an_end() {
        let long = |length: usize| "x".repeat(length);
        let bounds = Bounds::default();
        let after = |count: usize| vec![Dependency::new(TaskId(1), DependencyKind::AfterOk); count];
        let base = || spec(&["true"]);
        let fine = TaskSpec {
            name: long(NAME),
            output: Some(long(PATH).into()),
            environment: vec![("A".into(), long((4 << 20) - 10_000).into())].into(),
            ..base()
        };
        assert_eq!(check(&fine, ARRAY, &bounds), Ok(()), "an honest array");
        let flag =
            |kind: usize, detail: usize| EstimateFlag { kind: long(kind), detail: long(detail) };
        let estimate = Estimate::exact(MEMORY + Bytes(1));
        let wrong: Vec<(usize, TaskSpec)> = vec![
            (1, TaskSpec { name: long(NAME + 1), ..base() }),
            (1, TaskSpec { estimator: Some(long(NAME + 1)), ..base() }),
            (1, TaskSpec { output: Some(long(PATH + 1).into()), ..base() }),
            (1, TaskSpec { errors: Some(long(PATH + 1).into()), ..base() }),
            (1, TaskSpec { errors: Some("a\0b".into()), ..base() }),
            (1, TaskSpec { directory: long(PATH + 1).into(), ..base() }),
            (1, TaskSpec { command: vec![long(4 << 20).into()], ..base() }),
            (1, TaskSpec { script: Some(long(4 << 20).into()), ..base() }),
            (1, TaskSpec { environment: vec![("".into(), "".into()); 140_000].into(), ..base() }),
            (1, TaskSpec { after: after(DEPENDENCIES + 1), ..base() }),
            (ARRAY, TaskSpec { after: after(11), ..base() }),
            (1, TaskSpec { estimate_flags: vec![flag(1, 1); FLAGS + 1], ..base() }),
            (1, TaskSpec { estimate_flags: vec![flag(NAME + 1, 1)], ..base() }),
            (1, TaskSpec { estimate_flags: vec![flag(1, PATH + 1)], ..base() }),
            (1, TaskSpec { estimate: Some(estimate), ..base() }),
            (1, TaskSpec { gpu_memory: Some(MEMORY + Bytes(1)), ..base() }),
            (1, TaskSpec { time_limit: Some(SPAN + Millis(1)), ..base() }),
            (1, TaskSpec { begin_ms: Some(LAST_BEGIN + 1), ..base() }),
            (1, TaskSpec { warning: Some(Warning { signal: 65, before: Millis(1) }), ..base() }),
        ];
        for (tasks, spec) in wrong {
            let said = check(&spec, tasks, &bounds);
            assert!(said.as_ref().is_err_and(|said| said.to_string().len() < 300), "{said:?}");
        }
        assert_eq!(check(&TaskSpec { after: after(10), ..base() }, ARRAY, &bounds), Ok(()));
    }
}
