//! Pools of GPUs in a configuration file.

use super::file::{ConfigError, Reader, Setting, texts};
use crate::args::{self, pool::KEYS};
use toml::Spanned;
use toml::de::DeValue;

/// Tables that describe pools of GPUs to the daemon.
pub(super) const POOL: &str = "pool";

impl Reader<'_> {
    /// Pools of GPUs: each `[[pool]]` is what one `--pool` would be.
    pub(super) fn pools(&self, list: &Spanned<DeValue<'_>>) -> Result<Setting, ConfigError> {
        let unlike = || {
            let problem = "pools are written as [[pool]], each with its keys below".to_owned();
            self.wrong(&list.span(), problem)
        };
        let DeValue::Array(pools) = list.get_ref() else { return Err(unlike()) };
        let mut values = Vec::new();
        for pool in pools.iter() {
            let DeValue::Table(keys) = pool.get_ref() else { return Err(unlike()) };
            let mut parts = Vec::new();
            for (key, value) in keys {
                let problem = |problem: String| self.wrong(&value.span(), problem);
                let flag = key.get_ref().replace('_', "-");
                if !KEYS.contains(&flag.as_str()) {
                    let said = format!("unknown key {flag:?}; a pool has {}", KEYS.join(", "));
                    return Err(self.wrong(&key.span(), said));
                }
                let texts = texts(value.get_ref()).ok_or_else(|| {
                    problem(format!("{flag}: expected a text, a number or a list"))
                })?;
                let texts = texts.join(",");
                if texts.contains([';', '=']) {
                    return Err(problem(format!("{flag}: it has a ; or =")));
                }
                if flag != "name" {
                    // Judged by itself, so that its own place is told.
                    args::pool::pool(&format!("name=x;{flag}={texts}")).map_err(problem)?;
                }
                parts.push(format!("{flag}={texts}"));
            }
            let text = parts.join(";");
            args::pool::pool(&text).map_err(|problem| self.wrong(&pool.span(), problem))?;
            values.push(text);
        }
        let (line, _) = self.place(list.span().start);
        let (section, key, file) = ("daemon", POOL.to_owned(), self.file.to_owned());
        Ok(Setting { section, key, values, is_switch: false, variable: None, file, line })
    }
}
