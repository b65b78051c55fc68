//! A printed module tree, as Hugging Face models show themselves.

mod chain;
mod families;
mod module;

use super::{SummaryError, SummaryOptions, counts_agree, number, within_limit};
use crate::graph::{FlagKind, Graph};
use module::{Module, closing_count, read_line};

/// A whole tree.
struct Tree<'a> {
    /// The class of the whole.
    class: &'a str,
    modules: Vec<Module<'a>>,
    /// Parameters of the model, where the text says them.
    counted: Option<u64>,
}

pub(super) fn parse(
    text: &str,
    options: &SummaryOptions,
) -> Result<(Graph, Option<u32>), SummaryError> {
    let tree = read(text)?;
    families::check_layers(&tree)?;
    let graph = match families::find(&tree, options) {
        Some(graph) => graph,
        None => chain::build(&tree, options)?,
    };
    Ok((graph, None))
}

fn read(text: &str) -> Result<Tree<'_>, SummaryError> {
    let mut modules = Vec::new();
    let (mut class, mut root, mut total) = ("", None, None);
    let mut open = 0i64;
    for (index, line) in text.lines().enumerate() {
        open += line.matches('(').count() as i64 - line.matches(')').count() as i64;
        if let Some(rest) = line.strip_prefix("Total params:") {
            total = number(rest.trim());
        } else if let Some(count) = closing_count(line) {
            root = Some(count);
        } else if let (Some(name), true) = (line.strip_suffix('('), modules.is_empty()) {
            class = name;
        } else if let Some(module) = read_line(line, index + 1) {
            within_limit(modules.len(), index + 1)?;
            modules.push(
                module
                    .map_err(|(column, problem)| SummaryError::new(index + 1, column, problem))?,
            );
        }
    }
    if open > 0 {
        let line = text.lines().count().max(1);
        let problem = "the tree ends with open brackets; is the file cut off?";
        return Err(SummaryError::new(line, 1, problem));
    }
    // The last bracket counts what the tree shows; some printers' totals count modules twice and more.
    Ok(Tree { class, modules, counted: root.or(total) })
}

impl Tree<'_> {
    /// Flags a graph with other parameters than the tree. Printed counts may have a product twice whose weight
    /// is the word table (`shared` numbers), and parts that the graph leaves out.
    fn check(&self, graph: &mut Graph, shared: u64, left_out: u64) {
        let mut lines = self.modules.iter().map(Module::own_parameters);
        let shown = lines.try_fold(0u64, |sum, own| Some(sum.saturating_add(own?)));
        let (Some(counted), who) = (match self.counted {
            Some(counted) => (Some(counted), "the text says"),
            None => (shown, "its lines add up to"),
        }) else {
            return;
        };
        let built = graph.parameters();
        let near = |built: u64| counts_agree(built, counted, left_out);
        if !near(built) && !near(built.saturating_add(shared)) {
            let detail = format!("the model read has {built} parameters, {who} {counted}");
            graph.flag(FlagKind::SummaryMismatch, detail);
        }
    }
}

#[cfg(test)]
mod tests;
