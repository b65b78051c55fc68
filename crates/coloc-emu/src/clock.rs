//! The fleet's clock: the machine's, faster or stopped.

/// Turns the machine's time into the fleet's. Lives in the shared state.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(C)]
pub struct Clock {
    host_anchor_ns: u64,
    fleet_anchor_ns: u64,
    scale: f64,
    frozen: u32,
    reserved: u32,
}

impl Clock {
    /// A clock that starts at zero now.
    pub fn start(host_now_ns: u64, scale: f64, frozen: bool) -> Self {
        Clock {
            host_anchor_ns: host_now_ns,
            fleet_anchor_ns: 0,
            scale: sane(scale),
            frozen: frozen.into(),
            reserved: 0,
        }
    }

    /// The fleet's time.
    pub fn now_ns(&self, host_now_ns: u64) -> u64 {
        let passed = host_now_ns.saturating_sub(self.host_anchor_ns) as f64;
        match self.frozen {
            0 => self.fleet_anchor_ns.saturating_add((passed * self.scale) as u64),
            _ => self.fleet_anchor_ns,
        }
    }

    /// Goes on from here at another speed, or stands still.
    pub fn change(&mut self, host_now_ns: u64, scale: f64, frozen: bool) {
        self.fleet_anchor_ns = self.now_ns(host_now_ns);
        self.host_anchor_ns = host_now_ns;
        self.scale = sane(scale);
        self.frozen = frozen.into();
    }

    /// Fleet seconds in one second.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The clock stands still.
    pub fn is_frozen(&self) -> bool {
        self.frozen != 0
    }

    /// How long the machine takes for this much of the fleet's time; `None` while the clock stands.
    pub fn host_span_ns(&self, fleet_ns: f64) -> Option<f64> {
        (!self.is_frozen()).then(|| fleet_ns / self.scale)
    }
}

fn sane(scale: f64) -> f64 {
    if scale.is_finite() && scale > 0.0 { scale } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_scaled_and_stops() {
        let mut clock = Clock::start(1_000, 60.0, false);
        assert_eq!(clock.now_ns(1_010), 600);
        clock.change(1_010, 60.0, true);
        assert_eq!(clock.now_ns(9_999), 600);
        clock.change(2_000, 1.0, false);
        assert_eq!(clock.now_ns(2_005), 605);
        assert_eq!(clock.now_ns(0), 600, "a clock never goes back");
    }
}
