//! Names of users.

use std::collections::BTreeMap;
use std::path::Path;

/// Names by number, as `/etc/passwd` has them. Users of a directory service keep their number.
#[derive(Clone, Default, Debug)]
pub struct Users {
    names: BTreeMap<u32, String>,
}

impl Users {
    /// The users of this machine.
    pub fn of_system() -> Self {
        Users::read(Path::new("/etc/passwd"))
    }

    /// The users of a file; none if it cannot be read.
    pub fn read(file: &Path) -> Self {
        let text = std::fs::read(file).unwrap_or_default();
        Users::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Self {
        let user = |line: &str| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| !name.is_empty())?;
            Some((fields.nth(1)?.parse().ok()?, name.to_owned()))
        };
        let mut names = BTreeMap::new();
        for (uid, name) in text.lines().filter_map(user) {
            names.entry(uid).or_insert(name);
        }
        Users { names }
    }

    /// The user's name, or the number.
    pub fn name(&self, uid: u32) -> String {
        self.names.get(&uid).cloned().unwrap_or_else(|| uid.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up_and_numbers_stay() {
        let users = Users::parse(
            "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:\nbad\n:x:7:\n",
        );
        assert_eq!(
            (users.name(0), users.name(1000), users.name(7)),
            ("root".into(), "ann".into(), "7".into())
        );
    }
}
