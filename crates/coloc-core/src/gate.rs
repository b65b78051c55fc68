//! The gate that keeps tasks from GPUs whose SMs are busy: how busy, and until when.

use crate::gpus::{GpuState, Gpus};
use crate::policy::{Gate, Policy};
use crate::window::{RISK_SAMPLES, Window};
use coloc_model::{Fraction, GpuId, Millis, Time};

/// More than what rounding can add to a score.
const ROUNDING: f64 = 1e-9;

/// The SM risk score of a GPU that the gate closes; `None` if it is open.
pub(crate) fn hot_score(gate: &Gate, window: &Window, at: Time) -> Option<Fraction> {
    let Gate::Risk { sm, occupancy, dram } = gate else { return None };
    // A score is a weighted mean, so it exceeds no level: mostly nothing has to be worked out.
    if window.highest_sm() + ROUNDING < sm.get() {
        return None;
    }
    let samples = window.samples(at);
    let score = samples.risk(|a| a.sm);
    let hot = score >= *sm
        && (samples.risk(|a| a.occupancy) >= *occupancy || samples.risk(|a| a.dram) >= *dram);
    hot.then_some(score)
}

pub(crate) fn tumbling_mean(window: &Window, span: Millis, now: Time) -> f64 {
    let end = Time(now.0 - now.0 % span.0);
    window.mean_sm(end.before(span), end)
}

/// When a GPU that is refused now may be accepted without anything happening on it, judging by the
/// level of activity that it has now.
pub(crate) fn next_look(policy: &Policy, gpu: &GpuState, now: Time) -> Option<Time> {
    if gpu.busy_until > now {
        return Some(gpu.busy_until);
    }
    let window = gpu.window.as_ref()?;
    match policy.gate {
        Gate::Open | Gate::Expected { .. } => None,
        Gate::TumblingMean { window: span, .. } => {
            let next = Time(now.0 - now.0 % span.0) + span;
            (window.changed_at() + span > now.before(span)).then_some(next)
        }
        Gate::Risk { .. } => {
            let is_hot = |at: Time| hot_score(&policy.gate, window, at).is_some();
            let all = RISK_SAMPLES as u64;
            // A window's length from now on, only the level of now is in it.
            if is_hot(now + Millis::from_secs(all)) || !is_hot(now) {
                return None;
            }
            // The score falls as the hot samples leave the window: find the second at which it is cool.
            let (mut hot, mut cool) = (0, all);
            while cool - hot > 1 {
                let middle = (hot + cool) / 2;
                if is_hot(now + Millis::from_secs(middle)) { hot = middle } else { cool = middle }
            }
            Some(now + Millis::from_secs(cool))
        }
    }
}

/// A GPU's SM activity as the policy's gate reads it.
pub(crate) fn gate_load(policy: &Policy, gpus: &Gpus, gpu: GpuId, now: Time) -> f64 {
    match (policy.gate, gpus.get(gpu).window.as_ref()) {
        (Gate::TumblingMean { window: span, .. }, Some(window)) => tumbling_mean(window, span, now),
        (Gate::Risk { .. }, Some(window)) => window.samples(now).risk(|a| a.sm).get(),
        _ => gpus.load(gpu),
    }
}
