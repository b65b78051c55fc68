//! The kernel's device memory controller (cgroup v2, Linux 6.14 and newer): `dmem.max`.

use super::{ReadBack, Rung};
use coloc_model::Bytes;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A region of device memory that the kernel accounts, such as `drm/0000:07:00.0/vram0`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// Its size.
    pub capacity: Bytes,
}

/// A limit could not be set or read.
#[derive(Debug, thiserror::Error)]
pub enum DmemError {
    /// There is no controller, or no region for the device.
    #[error("this kernel and driver do not account the memory of {pci_bus_id}: {} has no region for it", file.display())]
    NoRegion {
        /// The device.
        pci_bus_id: String,
        /// Where it was looked for.
        file: PathBuf,
    },
    /// A file of the controller could not be read or written.
    #[error("cannot access {}: {source}; the cgroup must be delegated to coloc (systemd: Delegate=yes)", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The controller, at the root of a cgroup file system or of a folder that looks like one.
#[derive(Clone, Debug)]
pub struct Dmem {
    root: PathBuf,
}

impl Default for Dmem {
    fn default() -> Self {
        Dmem::at("/sys/fs/cgroup")
    }
}

impl Dmem {
    /// A controller in another place.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Dmem { root: root.into() }
    }

    fn capacity_file(&self) -> PathBuf {
        self.root.join("dmem.capacity")
    }

    /// The regions that the kernel accounts; empty without a controller.
    pub fn regions(&self) -> Vec<Region> {
        let text = fs::read_to_string(self.capacity_file()).unwrap_or_default();
        parse_amounts(&text)
            .filter_map(|(name, amount)| Some(Region { name, capacity: amount? }))
            .collect()
    }

    /// The region of a device. Addresses are compared without their domain's leading zeros, which NVML writes with
    /// eight digits and the kernel with four.
    pub fn region_of(&self, pci_bus_id: &str) -> Result<Region, DmemError> {
        let address = short_address(pci_bus_id);
        let found = self.regions().into_iter().find(|region| {
            !address.is_empty() && region.name.split('/').any(|part| short_address(part) == address)
        });
        found.ok_or_else(|| DmemError::NoRegion {
            pci_bus_id: pci_bus_id.to_owned(),
            file: self.capacity_file(),
        })
    }

    fn file(&self, cgroup: &str, name: &str) -> PathBuf {
        self.root.join(cgroup.trim_start_matches('/')).join(name)
    }

    /// Limits a cgroup's memory on a device and reads the limit back.
    pub fn limit(
        &self,
        cgroup: &str,
        pci_bus_id: &str,
        limit: Bytes,
    ) -> Result<ReadBack, DmemError> {
        let region = self.region_of(pci_bus_id)?;
        if let Some(parent) = Path::new(cgroup.trim_start_matches('/')).parent() {
            let file = self.root.join(parent).join("cgroup.subtree_control");
            // It may be on already, and only writing the limit tells whether it is.
            let _ = fs::write(file, "+dmem");
        }
        let file = self.file(cgroup, "dmem.max");
        let line = format!("{} {}\n", region.name, limit.0);
        fs::write(&file, line).map_err(|source| DmemError::File { file: file.clone(), source })?;
        let text = fs::read_to_string(&file).map_err(|source| DmemError::File { file, source })?;
        let read = parse_amounts(&text).find(|(name, _)| *name == region.name);
        Ok(ReadBack { rung: Rung::Dmem, set: limit, read: read.and_then(|(_, amount)| amount) })
    }

    /// Memory that a cgroup holds on a device.
    pub fn current(&self, cgroup: &str, pci_bus_id: &str) -> Result<Option<Bytes>, DmemError> {
        let region = self.region_of(pci_bus_id)?;
        let file = self.file(cgroup, "dmem.current");
        let text = fs::read_to_string(&file).map_err(|source| DmemError::File { file, source })?;
        Ok(parse_amounts(&text)
            .find(|(name, _)| *name == region.name)
            .and_then(|(_, amount)| amount))
    }
}

/// Lines of `REGION AMOUNT`, where the amount may be `max`.
fn parse_amounts(text: &str) -> impl Iterator<Item = (String, Option<Bytes>)> {
    text.lines().filter_map(|line| {
        let (name, amount) = line.trim().rsplit_once(char::is_whitespace)?;
        let amount = match amount {
            "max" => None,
            digits => Some(Bytes(digits.parse().ok()?)),
        };
        Some((name.trim().to_owned(), amount))
    })
}

fn short_address(text: &str) -> String {
    let text = text.trim().to_ascii_lowercase();
    match text.split_once(':') {
        Some((domain, rest)) if rest.contains(':') => {
            format!("{}:{rest}", domain.trim_start_matches('0'))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tempfile::TempDir;

    fn cgroups() -> TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        let capacity = "drm/0000:03:00.0/vram0 8514437120\ndrm/0000:07:00.0/vram0 42949672960\n";
        fs::write(dir.path().join("dmem.capacity"), capacity).expect("capacity");
        fs::create_dir_all(dir.path().join("coloc/task-7")).expect("a cgroup");
        dir
    }

    #[test]
    fn a_limit_is_set_and_read_back() {
        let dir = cgroups();
        let dmem = Dmem::at(dir.path());
        let limit = Bytes::from_mib(8192);
        let read = dmem.limit("/coloc/task-7", "00000000:07:00.0", limit).expect("it is set");
        assert!(read.holds(), "{read:?}");
        let text = fs::read_to_string(dir.path().join("coloc/task-7/dmem.max")).expect("written");
        assert_eq!(text, "drm/0000:07:00.0/vram0 8589934592\n");
        fs::write(dir.path().join("coloc/task-7/dmem.current"), text).expect("written");
        let current = dmem.current("/coloc/task-7", "0000:07:00.0").expect("it is read");
        assert_eq!(current, Some(limit));
    }

    #[test]
    fn what_is_missing_is_named() {
        let dir = cgroups();
        let dmem = Dmem::at(dir.path());
        let none =
            dmem.limit("/coloc/task-7", "00000000:99:00.0", Bytes(1)).expect_err("no region");
        assert!(none.to_string().contains("00000000:99:00.0"), "{none}");
        let gone = dmem.limit("/gone/task-8", "00000000:07:00.0", Bytes(1)).expect_err("no cgroup");
        assert!(gone.to_string().contains("Delegate=yes"), "{gone}");
        assert!(Dmem::at("/nonexistent").regions().is_empty());
    }

    #[test]
    fn no_limit_reads_as_none() {
        let amounts: Vec<_> = parse_amounts("drm/0000:07:00.0/vram0 max\nbad\n a  12 \n").collect();
        assert_eq!(
            amounts,
            [("drm/0000:07:00.0/vram0".to_owned(), None), ("a".to_owned(), Some(Bytes(12)))]
        );
    }

    proptest! {
        #[test]
        fn hostile_files_are_survived(text in "[a-z0-9/:. \\n]{0,80}") {
            parse_amounts(&text).for_each(drop);
            let _ = short_address(&text);
        }
    }
}
