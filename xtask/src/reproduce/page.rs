//! The page in the making.

use super::lab::failed;
use crate::run::Failed;
use std::fmt::Write;
use std::path::Path;

pub(super) struct Page {
    text: String,
    /// Names and contents, beside the page in `plots/`.
    plots: Vec<(String, String)>,
}

impl Page {
    pub(super) fn new(title: &str, introduction: &str) -> Self {
        Page { text: format!("# {title}\n\n{introduction}"), plots: Vec::new() }
    }

    pub(super) fn heading(&mut self, title: &str) {
        self.line(&format!("\n## {title}\n"));
    }

    pub(super) fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{text}");
    }

    pub(super) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        self.line(&format!("| {} |", head.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(head.len())));
        for row in rows {
            self.line(&format!("| {} |", row.join(" | ")));
        }
        self.line("");
    }

    pub(super) fn plot(&mut self, name: &str, alt: &str, svg: String) {
        self.line(&format!("![{alt}](plots/{name}.svg)\n"));
        self.plots.push((format!("plots/{name}.svg"), svg));
    }

    fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let plots = self.plots.iter().map(|(name, svg)| (name.as_str(), svg.as_str()));
        std::iter::once(("reproduction.md", self.text.as_str())).chain(plots)
    }

    pub(super) fn save(&self, docs: &Path) -> Result<(), Failed> {
        let write = |(name, text): (&str, &str)| {
            std::fs::create_dir_all(docs.join("plots"))?;
            std::fs::write(docs.join(name), text)
        };
        for file in self.files() {
            write(file).map_err(|error| failed(format!("docs/{}: {error}", file.0)))?;
            println!("wrote docs/{}", file.0);
        }
        Ok(())
    }

    pub(super) fn check(&self, docs: &Path) -> Result<(), Failed> {
        for (name, text) in self.files() {
            if std::fs::read_to_string(docs.join(name)).ok().as_deref() != Some(text) {
                return Err(failed(format!("docs/{name} is out of date: cargo xtask reproduce")));
            }
        }
        println!("docs/reproduction.md is up to date");
        Ok(())
    }
}
