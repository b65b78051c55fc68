//! GPM, the performance monitors of Hopper and newer. Two samples make a reading.
//!
//! `unsafe` because a sample must outlive the borrow that the wrapper ties it to: it is kept as a raw handle
//! between calls. Every handle in [`Samples`] was allocated by the library that it is freed with, and is
//! owned by it alone.
#![allow(unsafe_code)]

use super::{DriverError, translate};
use crate::sample::Reading;
use coloc_model::Fraction;
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};
use nvml_wrapper::{Device, Nvml};
use nvml_wrapper_sys::bindings::nvmlGpmSample_t;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// NVIDIA asks for at least this long between two samples.
const SHORTEST: Duration = Duration::from_millis(100);
/// A pair that is further apart says little of now.
const LONGEST: Duration = Duration::from_secs(60);
const WHAT: &str = "reading SM activity by GPM";

/// Samples that are kept: more than a server has GPUs and instances. Instances come and go.
const MOST: usize = 1024;

/// The last sample of every device and instance.
#[derive(Debug, Default)]
pub(super) struct Samples {
    last: HashMap<(u32, Option<u32>), (nvmlGpmSample_t, Instant)>,
}

impl Samples {
    /// Takes a sample of a device, or of one of its instances, and compares it with the last one.
    pub(super) fn read(
        &mut self,
        nvml: &Nvml,
        device: &Device<'_>,
        index: u32,
        instance: Option<u32>,
    ) -> Result<Option<Reading>, DriverError> {
        let key = (index, instance);
        let since = self.last.get(&key).map(|(_, at)| at.elapsed());
        if since.is_none() && !device.gpm_support().map_err(|e| translate(WHAT, e))? {
            return Err(DriverError::NotSupported { what: WHAT });
        }
        if since.is_some_and(|since| since < SHORTEST) {
            return Ok(None);
        }
        let sample = match instance {
            Some(instance) => device.gpm_mig_sample(instance),
            None => device.gpm_sample(),
        };
        let sample = sample.map_err(|error| translate(WHAT, error))?;
        let last = self.last.remove(&key).map(|(handle, at)| {
            // SAFETY: the handle is ours alone and of this library; `remove` made sure that it is freed once.
            (unsafe { GpmSample::from_handle(nvml, handle) }, at)
        });
        let reading = match &last {
            Some((last, at)) if at.elapsed() < LONGEST => Some(compare(nvml, last, &sample)?),
            _ => None,
        };
        if self.last.len() >= MOST {
            self.free(nvml);
        }
        self.last.insert(key, (sample.into_handle(), Instant::now()));
        Ok(reading)
    }

    /// Returns every sample to the library.
    pub(super) fn free(&mut self, nvml: &Nvml) {
        for (_, (handle, _)) in self.last.drain() {
            // SAFETY: as in `read`; draining makes sure that it is freed once.
            drop(unsafe { GpmSample::from_handle(nvml, handle) });
        }
    }
}

fn compare(
    nvml: &Nvml,
    before: &GpmSample<'_>,
    after: &GpmSample<'_>,
) -> Result<Reading, DriverError> {
    use GpmMetricId::{AnyTensorUtil, DramBwUtil, GraphicsUtil, SmOccupancy, SmUtil};
    let metrics = [GraphicsUtil, SmUtil, SmOccupancy, AnyTensorUtil, DramBwUtil];
    let results =
        gpm_metrics_get(nvml, before, after, &metrics).map_err(|error| translate(WHAT, error))?;
    // GPM answers in percent where DCGM answers in ratios.
    let ratio = |at: usize| {
        let value = results.get(at)?.as_ref().ok()?.value / 100.0;
        (-0.01..=1.05).contains(&value).then(|| Fraction::saturating(value))
    };
    Ok(Reading {
        gpu: ratio(0),
        sm: ratio(1),
        occupancy: ratio(2),
        tensor: ratio(3),
        dram: ratio(4),
    })
}
