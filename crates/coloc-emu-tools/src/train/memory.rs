//! Memory in phases: context, weights, first iterations, plateau, and whatever comes late.

use super::failure::{self, Failure};
use super::work::Work;
use coloc_emu::Place;
use coloc_emu::client::Client;
use coloc_model::Bytes;
use coloc_physics::Growth;

/// A caching allocator asks the driver for pieces of this size at most.
const PIECE: Bytes = Bytes::from_mib(512);

/// What the trainer holds and when it takes more.
pub(super) struct Memory<'a> {
    places: &'a [Place],
    plateau: Bytes,
    late: Option<(f64, Bytes)>,
    seconds: f64,
    time_scale: f64,
    started_ns: u64,
    growth: Growth,
    /// On each device, context included.
    held: Bytes,
}

impl<'a> Memory<'a> {
    /// Opens a context on every device.
    pub(super) fn open(
        client: &Client,
        places: &'a [Place],
        work: &Work,
        time_scale: f64,
    ) -> Result<Self, Failure> {
        for &place in places {
            client.open_context(place).map_err(failure::context)?;
        }
        let started_ns = client.lock()?.0.now_ns();
        Ok(Memory {
            places,
            plateau: work.profile.memory,
            late: work.late_growth,
            seconds: work.seconds,
            time_scale,
            started_ns,
            growth: Growth::LAUNCH,
            held: Growth::CONTEXT,
        })
    }

    /// Takes what is due. Returns the fleet seconds until more is, if that is known.
    pub(super) fn grow(
        &mut self,
        client: &Client,
        now_ns: u64,
        frozen: bool,
        work_s: f64,
    ) -> Result<Option<f64>, Failure> {
        let age_s = now_ns.saturating_sub(self.started_ns) as f64 / 1e9 * self.time_scale;
        let mut wait_s = None;
        while let Some((after, next)) = self.growth.next() {
            // On a stopped clock a task would never settle: it goes to its plateau at once.
            if age_s < after.secs() && !frozen {
                wait_s = Some((after.secs() - age_s) / self.time_scale);
                break;
            }
            self.growth = next;
        }
        let mut target = self.growth.held(self.plateau);
        if let Some((at, more)) = self.late
            && work_s >= at * self.seconds
        {
            target += more;
        }
        self.reach(client, target)?;
        Ok(wait_s)
    }

    fn reach(&mut self, client: &Client, target: Bytes) -> Result<(), Failure> {
        while self.held < target {
            let piece = target.saturating_sub(self.held).min(PIECE);
            for &place in self.places {
                client.allocate(place, piece).map_err(|error| {
                    let ours = self.held.saturating_sub(Growth::CONTEXT);
                    failure::allocation(client, self.places, place, piece, ours, error)
                })?;
            }
            self.held += piece;
        }
        Ok(())
    }
}
