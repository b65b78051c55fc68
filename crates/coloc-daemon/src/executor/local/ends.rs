//! How attempts ended: what their shims left, and what is to be cleared away after them.

use super::cgroup::TaskGroup;
use super::hooks::run_late_epilog;
use super::judge::judge;
use super::kill::Marks;
use super::run::{Ended, HookOrder, RunDir, RunError, Stopped, tail};
use super::{LocalExecutor, last_words_of};
use crate::executor::{End, Verdict};
use crate::record::{Record, Uid};
use coloc_api::spec::TaskSpec;
use coloc_gpu::process::TaskRoots;
use std::path::PathBuf;

/// A log's end is long enough to hold a framework's last words.
const LAST_WORDS: u64 = 64 << 10;

/// What has to be known of an attempt to tell how it ended, once its shim is gone.
pub(super) struct Remains {
    run: RunDir,
    last_words: PathBuf,
    owner: Uid,
    group: Option<TaskGroup>,
    marks: Option<Marks>,
    hooks: HookOrder,
}

impl LocalExecutor {
    /// What an attempt will leave whose processes are known by these roots.
    pub(super) fn remains(
        &self,
        record: &Record,
        spec: &TaskSpec,
        roots: Option<TaskRoots>,
    ) -> Remains {
        let run = self.run_dir(record);
        Remains {
            last_words: last_words_of(&run, record, spec),
            run,
            owner: record.owner,
            group: self.group(record),
            marks: roots.map(|roots| self.marks(record, roots)),
            hooks: self.hook_order(record),
        }
    }

    /// The control group of an attempt, where there are groups.
    pub(super) fn group(&self, record: &Record) -> Option<TaskGroup> {
        let groups = self.groups.as_ref().ok()?;
        Some(groups.group(record.id, record.attempt))
    }
}

impl Remains {
    /// How it ended. Whatever it left behind goes, unless the machine cannot tell yet.
    pub(super) fn end(self) -> End {
        let end = self.told();
        if matches!(end, End::Unclear(_)) {
            return end;
        }
        if let Some(group) = &self.group {
            group.end();
        }
        if let (End::Vanished, Some(marks)) = (&end, self.marks) {
            marks.sweep_beside();
        }
        // Its shim was killed before it could.
        if matches!(end, End::Vanished | End::Ended(_, None, _)) {
            run_late_epilog(&self.run, self.hooks);
        }
        end
    }

    /// As far as its shim told.
    fn told(&self) -> End {
        let run = &self.run;
        let unclear = |error: RunError| End::Unclear(error.to_string());
        match run.ended() {
            Ok(Some(Ended { prolog: Some(why), .. })) => return End::PrologFailed(why),
            Ok(Some(ended)) => {
                let words = tail(run, &self.last_words, self.owner, LAST_WORDS);
                let verdict = judge(&ended, &words.unwrap_or_default());
                return End::Ended(verdict, Some(ended.exit), Some(ended.at));
            }
            Err(RunError::Garbled { .. }) => return End::Vanished,
            Err(_) if !run.path().exists() => return End::Vanished,
            Err(error) => return unclear(error),
            Ok(None) => {}
        }
        match (run.fault(), run.revoke()) {
            (Some(fault), _) => End::NeverBegan(Some(fault)),
            (None, Ok(true)) if run.has_lost_its_claim() => End::Vanished,
            (None, Ok(true)) => End::NeverBegan(None),
            (None, Ok(false)) => match run.stopping() {
                Ok(Some(Stopped::TimeLimit)) => End::Ended(Verdict::TimedOut, None, None),
                Ok(_) | Err(_) => End::Vanished,
            },
            (None, Err(error)) => unclear(error),
        }
    }
}
