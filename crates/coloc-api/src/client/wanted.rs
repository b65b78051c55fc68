//! Which tasks a list is to have.

/// What a list is to have.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Wanted<'a> {
    /// Ended tasks too.
    pub all: bool,
    /// Of those, only what ended since, in seconds since 1970.
    pub since_s: f64,
    /// Of which users.
    pub whose: Whose<'a>,
}

/// Whose tasks are meant.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Whose<'a> {
    /// All that there are.
    #[default]
    Everybody,
    /// The tasks of the caller, as the daemon knows it.
    Mine,
    /// This user's.
    User(&'a str),
}

impl Wanted<'_> {
    pub(super) fn path(&self) -> String {
        let mut path = format!("/v1/tasks?all={}&since_s={}", self.all, self.since_s);
        match self.whose {
            Whose::Everybody => {}
            Whose::Mine => path.push_str("&mine=true"),
            Whose::User(user) => push_user(&mut path, Some(user)),
        }
        path
    }
}

pub(super) fn push_user(path: &mut String, user: Option<&str>) {
    let Some(user) = user else { return };
    path.push_str("&user=");
    for byte in user.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => path.push(byte.into()),
            other => path.push_str(&format!("%{other:02X}")),
        }
    }
}
