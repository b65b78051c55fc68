//! A printed module tree, as Hugging Face models show themselves.

mod chain;
mod families;
mod module;
mod vision;

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
    let graph = match families::find(&tree, options).or_else(|| vision::find(&tree)) {
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
        } else if let (Some(name), "") = (line.strip_suffix('('), class)
            && !line.trim_start().starts_with('(')
        {
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
    Ok(Tree { class, modules: written_out(&modules)?, counted: root.or(total) })
}

/// Every module as often as it is there. From the last to the first, so that what a module holds is complete.
fn written_out<'a>(modules: &[Module<'a>]) -> Result<Vec<Module<'a>>, SummaryError> {
    let mut backwards: Vec<Module<'a>> = Vec::with_capacity(modules.len());
    for module in modules.iter().rev() {
        let of_it = |held: &&Module<'_>| held.indent > module.indent;
        let held =
            if module.times > 1 { backwards.iter().rev().take_while(of_it).count() } else { 0 };
        let start = backwards.len() - held;
        backwards.push(*module);
        for _ in 1..module.times {
            within_limit(backwards.len() + held, module.line)?;
            backwards.extend_from_within(start..=start + held);
        }
    }
    backwards.reverse();
    Ok(backwards)
}

impl Tree<'_> {
    /// Flags a graph with other parameters than the tree. Printed counts may have a product twice whose weight
    /// is the word table (`shared` numbers), and parts that the graph leaves out. Some parameters have no line
    /// (`unlisted`).
    fn check(&self, graph: &mut Graph, shared: u64, left_out: u64, unlisted: u64) {
        let mut lines = self.modules.iter().map(Module::own_parameters);
        let shown = lines.try_fold(0u64, |sum, own| Some(sum.saturating_add(own?)));
        let (Some(counted), who) = (match self.counted {
            Some(counted) => (Some(counted), "the text says"),
            None => (shown.map(|shown| shown.saturating_add(unlisted)), "its lines add up to"),
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
