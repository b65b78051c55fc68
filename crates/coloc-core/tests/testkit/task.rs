use coloc_model::{Bytes, Estimate, Fraction, Millis, SignatureId, Task, TaskId, UserId};

/// A task in the making: one GPU, nothing known of it, and a kind of its own unless said otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskBuilder {
    kind: Option<u32>,
    user: u32,
    gpus: u32,
    exclusive: bool,
    memory: Option<Bytes>,
    sm: Option<f64>,
    duration: Option<Millis>,
    priority: i32,
}

pub(crate) const fn task() -> TaskBuilder {
    TaskBuilder {
        kind: None,
        user: 0,
        gpus: 1,
        exclusive: false,
        memory: None,
        sm: None,
        duration: None,
        priority: 0,
    }
}

impl TaskBuilder {
    /// What it runs: tasks of one kind have one signature.
    pub(crate) const fn kind(self, kind: u32) -> Self {
        TaskBuilder { kind: Some(kind), ..self }
    }

    pub(crate) const fn user(self, user: u32) -> Self {
        TaskBuilder { user, ..self }
    }

    pub(crate) const fn gpus(self, gpus: u32) -> Self {
        TaskBuilder { gpus, ..self }
    }

    pub(crate) const fn exclusive(self) -> Self {
        TaskBuilder { exclusive: true, ..self }
    }

    /// Estimated memory.
    pub(crate) const fn gib(self, gib: u64) -> Self {
        self.mib(gib * 1024)
    }

    /// Estimated memory.
    pub(crate) const fn mib(self, mib: u64) -> Self {
        TaskBuilder { memory: Some(Bytes::from_mib(mib)), ..self }
    }

    /// Estimated SM activity; comes with an estimate of memory.
    pub(crate) const fn sm(self, sm: f64) -> Self {
        TaskBuilder { sm: Some(sm), ..self }
    }

    /// Declared run time.
    pub(crate) const fn secs(self, secs: u64) -> Self {
        TaskBuilder { duration: Some(Millis::from_secs(secs)), ..self }
    }

    /// Higher goes first.
    pub(crate) const fn priority(self, priority: i32) -> Self {
        TaskBuilder { priority, ..self }
    }

    pub(crate) fn build(self, id: u32) -> Task {
        let sm = self.sm.map(Fraction::new);
        Task {
            id: TaskId(id),
            signature: SignatureId(self.kind.unwrap_or(1_000_000 + id)),
            user: UserId(self.user),
            gpus: self.gpus,
            exclusive: self.exclusive,
            estimate: self.memory.map(|bound| Estimate { peak: bound, bound, sm }),
            duration: self.duration,
            priority: self.priority,
        }
    }
}
