use coloc_model::{
    Bytes, Fraction, GpuModel, HostNeed, Memory, Millis, ModelSet, SignatureId, Task, TaskId,
    UserId,
};

/// A task in the making: one GPU, nothing known of it, and a kind of its own unless said otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskBuilder {
    kind: Option<u32>,
    user: u32,
    gpus: u32,
    exclusive: bool,
    models: Option<ModelSet>,
    memory: Memory,
    borrows: bool,
    host: HostNeed,
    sm: Option<f64>,
    duration: Option<Millis>,
    priority: i32,
    checkpoint: Option<Millis>,
}

pub(crate) const fn task() -> TaskBuilder {
    TaskBuilder {
        kind: None,
        user: 0,
        gpus: 1,
        exclusive: false,
        models: None,
        memory: Memory::Unknown,
        borrows: false,
        host: HostNeed::NONE,
        sm: None,
        duration: None,
        priority: 0,
        checkpoint: None,
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

    /// GPU models that it may run on.
    pub(crate) fn on(self, models: &[&str]) -> Self {
        let models = models.iter().map(|model| model.parse::<GpuModel>().expect("a known model"));
        TaskBuilder { models: Some(models.collect()), ..self }
    }

    /// Estimated memory.
    pub(crate) const fn gib(self, gib: u64) -> Self {
        self.mib(gib * 1024)
    }

    /// Estimated memory.
    pub(crate) const fn mib(self, mib: u64) -> Self {
        TaskBuilder { memory: Memory::exact(Bytes::from_mib(mib)), ..self }
    }

    /// An upper bound, in GiB, of which next to nothing is expected to be used.
    pub(crate) const fn at_most(self, gib: u64) -> Self {
        let (peak, bound) = (Bytes::from_mib(1), Bytes::from_mib(gib * 1024));
        TaskBuilder { memory: Memory::Estimated { peak, bound }, ..self }
    }

    /// Declared memory.
    pub(crate) const fn declares(self, gib: u64) -> Self {
        TaskBuilder { memory: Memory::declared(Bytes::from_mib(gib * 1024)), ..self }
    }

    /// Declared memory that may be lent while it is not used.
    pub(crate) const fn lends(self, gib: u64) -> Self {
        let bytes = Bytes::from_mib(gib * 1024);
        TaskBuilder { memory: Memory::Declared { bytes, reclaim: true }, ..self }
    }

    /// It may run in memory that others lend.
    pub(crate) const fn borrows(self) -> Self {
        TaskBuilder { borrows: true, ..self }
    }

    /// Estimated SM activity; comes with an estimate of memory.
    pub(crate) const fn sm(self, sm: f64) -> Self {
        TaskBuilder { sm: Some(sm), ..self }
    }

    /// Declared run time.
    pub(crate) const fn secs(self, secs: u64) -> Self {
        TaskBuilder { duration: Some(Millis::from_secs(secs)), ..self }
    }

    /// CPUs and memory of the machine.
    pub(crate) const fn host(self, cpus: u32, gib: u64) -> Self {
        let memory = Bytes::from_mib(gib * 1024);
        TaskBuilder { host: HostNeed { cpus, memory }, ..self }
    }

    /// It saves its work whenever it is told to.
    pub(crate) const fn saves(self) -> Self {
        TaskBuilder { checkpoint: Some(Millis::ZERO), ..self }
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
            models: self.models,
            pools: None,
            memory: self.memory,
            sm,
            borrows: self.borrows,
            checkpoint: self.checkpoint,
            host: self.host,
            duration: self.duration,
            priority: self.priority,
        }
    }
}
