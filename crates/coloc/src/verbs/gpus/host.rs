//! CPUs and memory of the machine, in a line.

use coloc_api::view::HostView;
use coloc_model::Bytes;

/// What tasks that run asked for, of what there is; `None` if nothing is counted.
pub(super) fn line(host: &HostView) -> Option<String> {
    let cpus = host.cpus_total.map(|total| format!("{} of {total} CPUs", host.cpus_used));
    let memory = host.memory_total_bytes.map(|total| {
        let used = Bytes(host.memory_used_bytes).gib();
        format!("{used:.1} of {:.1} GiB", Bytes(total).gib())
    });
    let parts: Vec<String> = cpus.into_iter().chain(memory).collect();
    (!parts.is_empty()).then(|| format!("Host: {} asked for by tasks", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_counted_is_not_told() {
        let host = HostView {
            cpus_total: Some(64),
            cpus_used: 8,
            memory_total_bytes: Some(512 << 30),
            memory_used_bytes: 16 << 30,
        };
        let told = "Host: 8 of 64 CPUs, 16.0 of 512.0 GiB asked for by tasks";
        assert_eq!(line(&host).as_deref(), Some(told));
        let cpus = HostView { memory_total_bytes: None, ..host };
        assert_eq!(line(&cpus).as_deref(), Some("Host: 8 of 64 CPUs asked for by tasks"));
        assert_eq!(line(&HostView::default()), None);
    }
}
