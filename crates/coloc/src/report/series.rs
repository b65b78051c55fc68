//! What a GPU did over time, as step functions that a page can afford to carry.

use coloc_sim::GpuSeries;

/// What a page does with the record of a GPU.
pub(super) trait Curve {
    /// The mean over GPUs, each point weighing the same. A GPU counts with its first value until then.
    fn mean(all: &[GpuSeries]) -> GpuSeries;
    /// At most about `limit` points: activity and power become means over equal spans of time, memory
    /// keeps its peak because the peak is what runs out.
    fn thinned(&self, limit: usize) -> GpuSeries;
}

/// Points in it; a column that is too short counts.
fn len(series: &GpuSeries) -> usize {
    [series.t_s.len(), series.sm.len(), series.memory_mib.len(), series.power_w.len()]
        .into_iter()
        .min()
        .unwrap_or(0)
}

fn values(series: &GpuSeries, index: usize) -> [f64; 3] {
    [series.sm[index], series.memory_mib[index], series.power_w[index]]
}

fn push(series: &mut GpuSeries, time: f64, [sm, memory, power]: [f64; 3]) {
    series.t_s.push(rounded(time, 1e3));
    series.sm.push(rounded(sm, 1e4));
    series.memory_mib.push(rounded(memory, 1e1));
    series.power_w.push(rounded(power, 1e1));
}

impl Curve for GpuSeries {
    fn mean(all: &[GpuSeries]) -> GpuSeries {
        let all: Vec<&GpuSeries> = all.iter().filter(|series| len(series) > 0).collect();
        let mut changes: Vec<(f64, usize, usize)> = Vec::new();
        for (gpu, series) in all.iter().enumerate() {
            changes.extend((0..len(series)).map(|index| (series.t_s[index], gpu, index)));
        }
        changes.sort_by(|a, b| a.0.total_cmp(&b.0));

        let mut now: Vec<[f64; 3]> = all.iter().map(|series| values(series, 0)).collect();
        let mut sum = now.iter().fold([0.0; 3], |sum, value| add(sum, *value, 1.0));
        let mut mean = GpuSeries::default();
        let mut changes = changes.into_iter().peekable();
        while let Some((time, gpu, index)) = changes.next() {
            let value = values(all[gpu], index);
            sum = add(add(sum, now[gpu], -1.0), value, 1.0);
            now[gpu] = value;
            if changes.peek().is_none_or(|next| next.0 > time) {
                push(&mut mean, time, sum.map(|part| (part / all.len() as f64).max(0.0)));
            }
        }
        mean
    }

    fn thinned(&self, limit: usize) -> GpuSeries {
        let (points, mut thin) = (len(self), GpuSeries::default());
        if points <= limit.max(2) {
            // Of several values at one instant only the last ever holds.
            let holds =
                |index: &usize| index + 1 == points || self.t_s[index + 1] > self.t_s[*index];
            (0..points)
                .filter(holds)
                .for_each(|at| push(&mut thin, self.t_s[at], values(self, at)));
            return thin;
        }
        let (begin, end) = (self.t_s[0], self.t_s[points - 1]);
        let span = (end - begin) / (limit - 1) as f64;
        let mut index = 0;
        for bucket in 0..limit - 1 {
            let from = begin + span * bucket as f64;
            let until = from + span;
            let (mut area, mut peak) = ([0.0; 3], 0.0_f64);
            // The value that holds at `from` may have begun in an earlier bucket.
            let mut at = index;
            while at < points && self.t_s[at] < until {
                let next = if at + 1 < points { self.t_s[at + 1] } else { until };
                let held = next.min(until) - self.t_s[at].max(from);
                if held > 0.0 {
                    area = add(area, values(self, at), held);
                    peak = peak.max(self.memory_mib[at]);
                }
                index = at;
                at += 1;
            }
            let [sm, _, power] = area.map(|part| part / span);
            push(&mut thin, from, [sm, peak, power]);
        }
        push(&mut thin, end, values(self, points - 1));
        thin
    }
}

fn add(sum: [f64; 3], value: [f64; 3], times: f64) -> [f64; 3] {
    [sum[0] + value[0] * times, sum[1] + value[1] * times, sum[2] + value[2] * times]
}

/// Digits beyond what a screen can show only make the file larger.
fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(points: &[(f64, f64)]) -> GpuSeries {
        let mut series = GpuSeries::default();
        for (time, value) in points {
            push(&mut series, *time, [*value, *value * 1000.0, *value * 100.0]);
        }
        series
    }

    #[test]
    fn the_mean_changes_when_any_gpu_does() {
        let a = series(&[(0.0, 0.2), (10.0, 0.6)]);
        let b = series(&[(0.0, 0.0), (5.0, 0.4), (10.0, 0.0)]);
        let mean = GpuSeries::mean(&[a, b]);
        assert_eq!(mean.t_s, [0.0, 5.0, 10.0]);
        assert_eq!(mean.sm, [0.1, 0.3, 0.3]);
        assert_eq!(mean.power_w, [10.0, 30.0, 30.0]);
    }

    #[test]
    fn the_mean_of_nothing_is_nothing() {
        assert_eq!(GpuSeries::mean(&[]), GpuSeries::default());
        assert_eq!(GpuSeries::mean(&[GpuSeries::default()]), GpuSeries::default());
    }

    #[test]
    fn thinning_keeps_the_mean_activity_the_peak_of_memory_and_both_ends() {
        let saw: Vec<(f64, f64)> =
            (0..=10_000).map(|t| (f64::from(t), if t % 2 == 0 { 0.8 } else { 0.2 })).collect();
        let thin = series(&saw).thinned(101);
        assert_eq!(thin.t_s.len(), 101);
        assert_eq!((thin.t_s[0], thin.t_s[100]), (0.0, 10_000.0));
        assert!(thin.sm[..100].iter().all(|sm| (sm - 0.5).abs() < 1e-3), "{:?}", &thin.sm[..5]);
        assert!(thin.memory_mib[..100].iter().all(|memory| *memory == 800.0));
    }

    #[test]
    fn thinning_holds_a_value_over_spans_without_a_change() {
        let mut points = vec![(0.0, 0.5)];
        points.extend((0..200).map(|step| (900.0 + f64::from(step) * 0.5, 0.1)));
        let thin = series(&points).thinned(11);
        assert_eq!(thin.sm[..8], [0.5; 8]);
    }

    #[test]
    fn a_value_that_held_for_no_time_is_not_drawn() {
        let handover = series(&[(0.0, 0.5), (10.0, 0.0), (10.0, 0.5), (20.0, 0.0)]);
        assert_eq!(handover.thinned(100).sm, [0.5, 0.5, 0.0]);
    }

    #[test]
    fn a_short_series_and_a_ragged_one_pass() {
        let mut ragged = series(&[(0.0, 0.5), (1.0, 0.7)]);
        ragged.sm.pop();
        assert_eq!(ragged.thinned(100).t_s, [0.0]);
    }
}
