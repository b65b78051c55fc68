//! What an owner asks of the machine in memory.

use super::*;

/// The executor of one owner.
pub(crate) struct SimulatedExecutor(pub(crate) Arc<Machine>);

fn enforcement() -> EnforcementView {
    EnforcementView {
        containment: Containment::Session,
        processes: "simulated".to_owned(),
        dmem: false,
        gpu_memory: "none".to_owned(),
        host_memory: None,
        cpus: None,
        mps: None,
        sms: None,
    }
}

impl Executor for SimulatedExecutor {
    fn launch(
        &mut self,
        record: &Record,
        spec: &TaskSpec,
        _memory: MemoryLimit,
        _neighbours: &[&Record],
    ) -> Result<Launched, LaunchError> {
        let machine = &self.0;
        machine.disk.crash_point();
        let (task, attempt) = (record.id, record.attempt);
        let row = machine.disk.row(task);
        let is_this = |row: &Record| row.phase == TaskState::Launching && row.attempt == attempt;
        if !row.as_ref().is_some_and(is_this) {
            let broken = format!("task {task} is launched, attempt {attempt}, without a row");
            machine.state().broken.push(broken);
        }
        if row.is_some_and(|row| row.cancelled) {
            machine
                .state()
                .broken
                .push(format!("task {task} is launched although it was cancelled"));
        }
        let failure = machine.state().failures.pop_front();
        let used = machine.state().attempts.contains_key(&(task, attempt));
        if let Some(blame) = failure.or(used.then_some(Blame::Number)) {
            if blame == Blame::Setup {
                machine.state().told.push_back(Input::SharingReady);
            }
            return Err(LaunchError { blame, why: format!("simulated: {blame:?}") });
        }
        let placement = record.placement.as_ref();
        let new = Attempt {
            gpus: placement.iter().flat_map(|placement| placement.gpus()).collect(),
            memory: spec.gpu_memory,
            alone: spec.exclusive || placement.is_some_and(is_whole),
            limit: spec.time_limit,
            claim: Claim::Open,
            stopping: false,
            end: None,
        };
        machine.state().attempts.insert((task, attempt), new);
        machine.disk.crash_point();
        Ok(Launched { enforcement: enforcement(), without: None, neighbours: Vec::new() })
    }

    fn stop(&mut self, record: &Record, _request: StopRequest) {
        self.0.disk.crash_point();
        self.0.check_intent(record, "stopped");
        let mut state = self.0.state();
        if state.revoke(record.id, record.attempt) {
            state.end(record.id, record.attempt, End::NeverBegan(None));
        } else if let Some(attempt) = state.attempts.get_mut(&(record.id, record.attempt)) {
            attempt.stopping = true;
        }
        drop(state);
        self.0.disk.crash_point();
    }

    fn longest_stop(&self, _spec: &TaskSpec, _request: StopRequest) -> Duration {
        Duration::from_secs(10)
    }

    fn can_change_time_limit(&self, _record: &Record) -> bool {
        true
    }

    fn set_time_limit(&mut self, record: &Record, spec: &TaskSpec) -> Result<(), String> {
        self.0.disk.crash_point();
        let task = record.id;
        if !self.0.disk.row(task).is_some_and(|row| row.limit_changed && row.spec == record.spec) {
            let broken = format!("task {task} is told of a time limit without a row");
            self.0.state().broken.push(broken);
        }
        if let Some(attempt) = self.0.state().attempts.get_mut(&(task, record.attempt)) {
            attempt.limit = spec.time_limit;
        }
        self.0.disk.crash_point();
        Ok(())
    }

    fn kill(&mut self, record: &Record) {
        self.0.disk.crash_point();
        self.0.check_intent(record, "killed");
        self.0.end(record.id, record.attempt, End::Vanished);
    }

    fn can_signal(&self, record: &Record, _request: SignalRequest) -> bool {
        let state = self.0.state();
        state.attempts.get(&(record.id, record.attempt)).is_some_and(Attempt::has_begun)
    }

    fn signal(&mut self, record: &Record, request: SignalRequest) {
        self.0.disk.crash_point();
        let written = self.0.disk.signals(record.id);
        let mut state = self.0.state();
        let sent = state.signals.entry(record.id).or_default();
        *sent += 1;
        if *sent > written {
            let broken =
                format!("task {} is sent signal {} without a row", record.id, request.signal);
            state.broken.push(broken);
        }
    }

    fn find(&mut self, record: &Record, _spec: &TaskSpec) -> Found {
        let mut state = self.0.state();
        if state.unclear {
            return Found::Unknown("simulated: the disk does not answer".to_owned());
        }
        if state.revoke(record.id, record.attempt) {
            return Found::NeverStarted;
        }
        match state.attempts.get(&(record.id, record.attempt)).and_then(|a| a.end.clone()) {
            Some(end) => Found::Ended(end),
            None => Found::Running,
        }
    }

    fn keep_only(&mut self, _attempts: &[(TaskId, u32)], _is_known: &dyn Fn(TaskId) -> bool) {}

    fn attribute_to(&mut self, _tasks: &mut dyn Iterator<Item = TaskId>) {}

    fn enforcement(&self, record: &Record) -> Option<Box<EnforcementView>> {
        record.enforcement.clone()
    }

    fn output(&self, record: &Record, _spec: &TaskSpec) -> PathBuf {
        PathBuf::from(format!("/simulated/{}.{}", record.id, record.attempt))
    }

    fn look_for_progress(&mut self, record: &Record, _spec: &TaskSpec) {
        let (task, attempt) = (record.id, record.attempt);
        // A second of its clock is an iteration.
        let sign = self.0.clock.now().0;
        let iterations = Some(Count { number: sign / 1000, total: Some(1_000_000) });
        let counted = Some(Counted { iterations, unit: "iter", epochs: None, percent: None });
        let sign = Some(sign);
        self.0.state().told.push_back(Input::Sign { task, attempt, sign, counted });
    }

    fn leader(&self, _task: TaskId) -> Option<u32> {
        None
    }

    fn containment(&self) -> (Containment, String) {
        (Containment::Session, "simulated".to_owned())
    }

    fn set_hooks(&mut self, _hooks: &crate::administration::Hooks) {}

    fn epilog_failure(&self, _record: &Record) -> Option<String> {
        None
    }

    fn set_grace(&mut self, _grace: Millis) {}

    fn set_gpus(&mut self, _gpus: &Gpus) {}

    fn is_gone(&self, gpu: GpuId) -> bool {
        self.0.is_lost(gpu)
    }

    fn condition(&self, _gpu: GpuId) -> Option<Condition> {
        None
    }

    fn gpu_errors(&mut self) -> Vec<GpuError> {
        std::mem::take(&mut self.0.state().errors)
    }

    fn deaf_to_gpu_errors(&self) -> Option<String> {
        None
    }

    fn sharing_server(&self, _record: &Record) -> SharingServer {
        SharingServer::None
    }

    fn sweep_sharing(&mut self, _now: Time, _attempts: &mut dyn Iterator<Item = &Record>) {}

    fn deliver(&mut self, notice: &crate::notices::Notice, _sendmail: &std::path::Path) {
        self.0.disk.crash_point();
        let mut state = self.0.state();
        state.delivered.push(notice.clone());
        let result = state.deliveries.pop_front().unwrap_or(Ok(()));
        state.told.push_back(Input::Delivered { id: notice.id, result });
    }

    fn tear_down(&mut self) {}
}

/// An attempt has whole GPUs.
fn is_whole(placement: &Placement) -> bool {
    placement.share == coloc_model::Share::Exclusive
}
