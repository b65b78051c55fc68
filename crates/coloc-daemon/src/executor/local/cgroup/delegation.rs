//! Where this daemon may make groups. The tree usually belongs to systemd: only a part of it that was handed over is
//! ours to change.

use super::{Controller, Groups};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Names a folder of the cgroup file system to use, for administrators who know better.
pub const BASE_VARIABLE: &str = "COLOC_CGROUP";
/// What the variable says to do without groups.
const WITHOUT: &str = "none";
/// The subgroup that the daemon itself is in, so that its own group has no processes: only such a group can have limits
/// on the groups below it.
const OWN_SUBGROUP: &str = "daemon";
/// Where the file system of groups usually is.
const USUAL_ROOT: &str = "/sys/fs/cgroup";
/// What `statfs` calls it (linux/magic.h).
const CGROUP2_MAGIC: rustix::fs::FsWord = 0x6367_7270;
/// The group below the top of a tree that no other program arranges.
pub(super) const TOP: &str = "coloc";

/// Why there are no groups.
#[derive(Debug, thiserror::Error)]
pub enum NoGroups {
    /// An administrator wants none.
    #[error("{BASE_VARIABLE}={WITHOUT} turns control groups off")]
    TurnedOff,
    /// There is no file system of them.
    #[error("cgroup v2 is not mounted")]
    NotMounted,
    /// They belong to another program.
    #[error(
        "the cgroup {} was not handed over to coloc; start it as a service (`coloc init`), whose unit has Delegate=yes",
        .0.display()
    )]
    NotDelegated(PathBuf),
    /// What was chosen is no part of the file system of groups: it would hold no process.
    #[error(
        "{BASE_VARIABLE}={} is not a folder of the cgroup v2 file system, so no process could be held by it; \
         name one below {}, or unset it", path.display(), root.display()
    )]
    NoGroup {
        /// What was chosen.
        path: PathBuf,
        /// Where the file system is mounted, or usually is.
        root: PathBuf,
    },
    /// The kernel says no.
    #[error("{}: {source}", path.display())]
    Refused {
        /// Where.
        path: PathBuf,
        /// What it says.
        source: io::Error,
    },
}

/// Where the file system is, and where in it this process.
struct Mounted {
    root: PathBuf,
    own: PathBuf,
}

pub(super) fn find(prefix: &str) -> Result<Groups, NoGroups> {
    let mounted = mounted();
    let prefix = prefix.to_owned();
    if let Some(chosen) = std::env::var_os(BASE_VARIABLE).map(PathBuf::from) {
        if chosen.as_os_str() == WITHOUT {
            return Err(NoGroups::TurnedOff);
        }
        return at_chosen(&chosen, mounted.map(|mounted| mounted.root), prefix);
    }
    let Mounted { root, own } = mounted.ok_or(NoGroups::NotMounted)?;
    let here = root.join(&own);
    if own.as_os_str().is_empty() {
        // The top, as in a container; no other program arranges things here.
        let switched = [here.clone(), here.join(TOP)];
        return choose_root(root, PathBuf::from(TOP), prefix, &switched);
    }
    if own.file_name().is_some_and(|name| name == OWN_SUBGROUP)
        && let Some(parent) = own.parent()
        && is_ours(&root.join(parent))
    {
        return choose_root(root.clone(), parent.to_owned(), prefix, &[root.join(parent)]);
    }
    if !is_ours(&here) {
        return Err(NoGroups::NotDelegated(here));
    }
    // With limits switched on, systemd could not start us again beside running tasks: we would be a process in a
    // group that has limited ones below it.
    choose_root(root, own, prefix, &[])
}

/// Uses a group that was chosen, provided that it is one.
fn at_chosen(chosen: &Path, root: Option<PathBuf>, prefix: String) -> Result<Groups, NoGroups> {
    let usual = || root.clone().unwrap_or_else(|| PathBuf::from(USUAL_ROOT));
    let no_group = || NoGroups::NoGroup { path: chosen.to_owned(), root: usual() };
    // One that is not there yet is made in one that is.
    let real = chosen.canonicalize().or_else(|_| {
        let parent = chosen.parent().ok_or(io::ErrorKind::NotFound)?.canonicalize()?;
        Ok::<_, io::Error>(parent.join(chosen.file_name().ok_or(io::ErrorKind::InvalidInput)?))
    });
    let real = real.map_err(|_| no_group())?;
    let there = if real.exists() { real.as_path() } else { real.parent().unwrap_or(&real) };
    let base = root.as_ref().and_then(|root| real.strip_prefix(root).ok()).map(Path::to_owned);
    match (&root, base) {
        (Some(root), Some(base)) if is_of_groups(there) => {
            choose_root(root.clone(), base, prefix, &[real])
        }
        _ => Err(no_group()),
    }
}

/// A folder is the kernel's, and not one that merely looks like a group.
fn is_of_groups(folder: &Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|found| found.f_type == CGROUP2_MAGIC)
}

/// A user's own, or handed over by systemd, which marks what it hands over.
fn is_ours(folder: &Path) -> bool {
    let user = rustix::process::geteuid();
    if !user.is_root() {
        return fs::metadata(folder).is_ok_and(|metadata| metadata.uid() == user.as_raw());
    }
    let marked = |name: &str| {
        let mut value = [0; 8];
        let length = rustix::fs::getxattr(folder, name, &mut value);
        length.is_ok_and(|length| value[..length.min(8)] == *b"1")
    };
    marked("trusted.delegate") || marked("user.delegate")
}

/// Uses a place, with as many controllers as can be had by switching them on in some groups.
fn choose_root(
    root: PathBuf,
    base: PathBuf,
    prefix: String,
    switched: &[PathBuf],
) -> Result<Groups, NoGroups> {
    let folder = root.join(&base);
    let refused = |source| NoGroups::Refused { path: folder.clone(), source };
    make(&folder).map_err(refused)?;
    for folder in switched {
        for controller in Controller::ALL {
            // Which of them could be had is read afterwards.
            let word = format!("+{}", controller.name());
            let _ = fs::write(folder.join("cgroup.subtree_control"), word);
        }
    }
    let on = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
    let is_on = |controller: &Controller| {
        on.split_whitespace().any(|name| name.trim_start_matches('+') == controller.name())
    };
    let controllers = Controller::ALL.into_iter().filter(is_on).collect();
    // Only trying tells whether groups can be made.
    let probe = folder.join(format!("{prefix}probe"));
    make(&probe).map_err(refused)?;
    let _ = fs::remove_dir(&probe);
    Ok(Groups { root, base, prefix, controllers })
}

/// Makes a group. A daemon that was killed may have left it, and another may have made it a moment ago.
fn make(group: &Path) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && group.is_dir() => Ok(()),
        made => made,
    }
}

fn mounted() -> Option<Mounted> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    Some(Mounted { root: mount_point(&mounts)?, own: own_group(&own)? })
}

/// The mount point of the first cgroup v2 file system.
fn mount_point(mountinfo: &str) -> Option<PathBuf> {
    let point = |line: &str| {
        let (mount, kind) = line.split_once(" - ")?;
        let is_v2 = kind.split_whitespace().next() == Some("cgroup2");
        is_v2.then(|| mount.split_whitespace().nth(4).map(PathBuf::from)).flatten()
    };
    mountinfo.lines().find_map(point)
}

/// This process's group below the mount point.
fn own_group(text: &str) -> Option<PathBuf> {
    let own = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // A group outside of what this namespace sees is of no use here.
    (!own.split('/').any(|part| part == "..")).then(|| PathBuf::from(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mounts_and_groups_are_read() {
        let mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      31 22 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      30 22 0:26 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(mounts), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(mount_point("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"), None);
        let hybrid = "4:memory:/x\n0::/system.slice/coloc.service/daemon\n";
        assert_eq!(own_group(hybrid), Some("system.slice/coloc.service/daemon".into()));
        assert_eq!(own_group("0::/\n"), Some(PathBuf::new()));
        assert_eq!((own_group("4:memory:/x\n"), own_group("0::/../x\n")), (None, None));
    }

    #[test]
    fn a_plain_folder_is_no_group_whatever_its_name() {
        let plain = tempfile::tempdir().expect("a folder");
        let root = Some(plain.path().canonicalize().expect("a path"));
        for name in ["", "x", "no/where"] {
            let chosen = plain.path().join(name);
            for root in [None, root.clone()] {
                let found = at_chosen(&chosen, root, "p-".to_owned());
                assert!(matches!(found, Err(NoGroups::NoGroup { .. })), "{name:?}: {found:?}");
            }
            assert!(!chosen.exists() || name.is_empty(), "nothing was made");
        }
        assert_eq!(std::fs::read_dir(plain.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn a_place_is_used_with_the_controllers_that_it_has() {
        let root = tempfile::tempdir().expect("a folder");
        let plain = choose_root(root.path().to_owned(), PathBuf::from("a"), "p-".to_owned(), &[]);
        assert_eq!(plain.expect("it is usable").controllers, []);
        // Of plain files the last word written is what stays.
        let switched = [root.path().join("b")];
        let all =
            choose_root(root.path().to_owned(), PathBuf::from("b"), "p-".to_owned(), &switched);
        assert_eq!(all.expect("it is usable").controllers, [Controller::Cpuset]);
        // A daemon that was killed while it tried left its probe.
        std::fs::create_dir(root.path().join("b/p-probe")).expect("a folder");
        let again = choose_root(root.path().to_owned(), PathBuf::from("b"), "p-".to_owned(), &[]);
        assert_eq!(again.expect("it is usable still").controllers, [Controller::Cpuset]);
        assert!(!root.path().join("b/p-probe").exists());
        let gone =
            choose_root(PathBuf::from("/nonexistent"), PathBuf::from("x"), "p-".to_owned(), &[]);
        assert!(gone.expect_err("it is not there").to_string().contains("/nonexistent/x"));
    }

    proptest! {
        #[test]
        fn hostile_tables_are_survived(text in "[ -~\\n]{0,200}") {
            let _ = (mount_point(&text), own_group(&text));
        }
    }
}
