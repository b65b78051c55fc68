//! Plain sharing: processes with contexts of their own, which the driver time-slices. There is nothing to set up;
//! a task only has to be told which GPUs are its.

use crate::device::Uuid;

/// The variables that show a task its GPUs, and no others. Devices are named by UUID and numbered as on the bus, so
/// that every tool means the same one.
pub fn visible_devices(devices: &[Uuid]) -> Vec<(&'static str, String)> {
    let names: Vec<&str> = devices.iter().map(Uuid::as_str).collect();
    vec![("CUDA_VISIBLE_DEVICES", names.join(",")), ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_by_uuid() {
        let variables = visible_devices(&[Uuid::new("GPU-aa"), Uuid::new("MIG-bb")]);
        assert_eq!(variables[0], ("CUDA_VISIBLE_DEVICES", "GPU-aa,MIG-bb".to_owned()));
    }
}
