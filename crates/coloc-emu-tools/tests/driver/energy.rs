//! The energy counter is the integral of power.

use crate::support::{device, nvml, on_fleet};
use coloc_emu::client::Client;
use coloc_emu::{Emulator, Options, Place};
use coloc_physics::catalogue;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn energy_is_power_times_time() {
    let options = Options { time_scale: 100.0, frozen: false, shared: false };
    on_fleet("energy::energy_is_power_times_time", "2xA100-40GB", options, |emulator| {
        let nvml = nvml();
        let handle = device(&nvml, 0);
        let set_clock = |frozen| {
            let mut state = emulator.lock().expect("free");
            let now = state.host_now_ns();
            state.set_clock(now, options.time_scale, frozen);
            state.now_ns()
        };
        let read = || {
            let (mut millijoules, mut milliwatts) = (0u64, 0u32);
            // The clock stands while we read, so that all is of one moment.
            let before = set_clock(true);
            // SAFETY: the targets are variables of ours.
            unsafe {
                assert_eq!(nvml.nvmlDeviceGetTotalEnergyConsumption(handle, &mut millijoules), 0);
                assert_eq!(nvml.nvmlDeviceGetPowerUsage(handle, &mut milliwatts), 0);
            }
            set_clock(false);
            (before as f64 / 1e9, millijoules as f64 / 1e3, f64::from(milliwatts) / 1e3)
        };
        let own = Arc::new(Emulator::from_environment().expect("the same fleet"));
        let client = Client::join(own, &[Place::whole(0)]).expect("joins");
        client.open_context(Place::whole(0)).expect("room");
        client.declare(&catalogue::find("vgg").expect("catalogued").profile()).expect("joined");
        for busy in [false, true, false] {
            client.set_busy(busy).expect("joined");
            let (start, from, _) = read();
            std::thread::sleep(Duration::from_millis(300));
            let (end, to, watts) = read();
            let expected = watts * (end - start);
            let error = ((to - from) / expected - 1.0).abs();
            assert!(error < 0.01, "busy {busy}: {} J against {expected} J", to - from);
            assert_eq!(busy, watts > 200.0, "{watts} W");
        }
    });
}
