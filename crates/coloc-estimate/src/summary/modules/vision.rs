//! Trees of vision transformers. How large the images are is printed nowhere.

use super::super::MOST_LAYERS;
use super::super::vision::{HEAD_WIDTH, WIDEST, head, is_drop_path, projection};
use super::Tree;
use super::module::Module;
use crate::graph::{Activation, FlagKind, Graph};
use crate::hf::{Chance, Head, Options, Projection, Vit};

/// The side of an image where no count of parameters tells.
const USUAL_SIDE: u32 = 224;

/// The graph of a vision transformer; none where the tree is that of another net.
pub(super) fn find(tree: &Tree<'_>) -> Option<Graph> {
    let modules = &tree.modules[..];
    let is_block = |module: &Module<'_>| module.container && projection(module.kind).is_some();
    let first = modules.iter().position(is_block)?;
    let last = modules.iter().rposition(is_block)?;
    let indent = modules[first].indent;
    let length = |from: usize| {
        modules[from + 1..].iter().take_while(|module| module.indent > indent).count()
    };
    let block = &modules[first + 1..=first + length(first)];
    let conv = patches(&modules[..first])?;
    let ending = Ending::read(&modules[last + 1 + length(last)..])?;
    let mut vit = read_block(block, projection(modules[first].kind)?)?;
    let layers = modules[first..=last].iter().filter(|module| is_block(module)).count();
    vit.layers = u32::try_from(layers).ok().filter(|_| layers <= MOST_LAYERS)?;
    vit.channels = conv.placed(0)?;
    vit.patch = conv.pair("kernel_size")?.0;
    vit.chance.drop_path = modules[first..=last].iter().any(|module| is_drop_path(module.kind));
    (vit.head, vit.classifiers, vit.mean) = (ending.head, ending.classifiers, ending.mean);
    let distilled = ending.classifiers == 2 || modules[first].kind == "DeiTLayer";
    vit.extra = if distilled { 2 } else { 1 };
    if conv.placed(1)? != vit.width || vit.patch > USUAL_SIDE {
        return None;
    }
    vit.grid = (USUAL_SIDE / vit.patch, USUAL_SIDE / vit.patch);
    let side = counted_side(tree, &vit, ending.left_out);
    vit.grid = side.map_or(vit.grid, |side| (side, side));
    let mut graph = vit.graph(&Options::default());
    for assumption in assumptions(&vit, side.is_some()) {
        graph.flag(FlagKind::Assumption, assumption);
    }
    tree.check(&mut graph, 0, ending.left_out, unlisted(&vit));
    Some(graph)
}

/// Layers that hand on what they get.
fn passes(module: &Module<'_>) -> bool {
    module.container || matches!(module.kind, "Identity" | "Dropout") || is_drop_path(module.kind)
}

/// The one convolution before the blocks, whose windows do not overlap.
fn patches<'a>(before: &'a [Module<'a>]) -> Option<&'a Module<'a>> {
    let mut layers = before.iter().filter(|module| !passes(module));
    let conv = layers.next().filter(|layer| layer.kind == "Conv2d" && layer.bias())?;
    let (rows, columns) = conv.pair("kernel_size")?;
    let whole = rows == columns && conv.pair("stride") == Some((rows, columns));
    (whole && layers.next().is_none()).then_some(conv)
}

/// Sizes of a block; what stands around it is filled in later.
fn read_block(block: &[Module<'_>], projection: Projection) -> Option<Vit> {
    let products: Vec<&Module<'_>> =
        block.iter().filter(|module| module.product().is_some()).collect();
    let layers = block.iter().filter(|module| !passes(module) && module.product().is_none());
    let mut function = None;
    for module in layers.filter(|module| module.kind != "LayerNorm") {
        function = Some(Activation::from_name(module.kind)?);
    }
    let wanted = match projection {
        Projection::Turned => 3,
        Projection::Packed => 4,
        Projection::Apart => 6,
    };
    let (width, _) = products.first()?.product()?;
    let (_, hidden) = products.get(products.len().checked_sub(2)?)?.product()?;
    let drops = |attention: bool| {
        let mut dropouts = block.iter().filter(|module| module.kind == "Dropout");
        dropouts.any(|module| (module.name == "attn_drop") == attention && module.drops())
    };
    (products.len() == wanted && width <= WIDEST).then_some(Vit {
        channels: 3,
        grid: (1, 1),
        patch: 1,
        width,
        layers: 1,
        hidden,
        function: function.unwrap_or(Activation::GELU),
        heads: (width / HEAD_WIDTH).max(1),
        extra: 1,
        projection,
        biased: products.first()?.bias(),
        chance: Chance { dropout: drops(false), attention_dropout: drops(true), drop_path: false },
        head: Head::Bare,
        classifiers: 0,
        mean: false,
        eager: keeps_scores(block, projection),
    })
}

/// Whether scores are materialised, by signs of the release. timm 0.9 streams and prints norms of queries; 0.6 does
/// neither. Since transformers 4.50 one class is there for both ways, without a dropout of its own, and streams unless told
/// otherwise; before, it had kin that streamed.
fn keeps_scores(block: &[Module<'_>], projection: Projection) -> bool {
    if projection == Projection::Packed {
        return !block.iter().any(|module| module.name == "q_norm");
    }
    let class = |module: &Module<'_>| module.container && module.kind.ends_with("SelfAttention");
    let Some(at) = block.iter().position(class) else { return false };
    let held = block[at + 1..].iter().take_while(|module| module.indent > block[at].indent);
    !block[at].kind.contains("Sdpa") && held.into_iter().any(|module| module.kind == "Dropout")
}

/// What follows the last block.
struct Ending {
    head: Head,
    classifiers: u32,
    mean: bool,
    /// Parameters of a pooler, which is not trained.
    left_out: u64,
}

impl Ending {
    fn read(after: &[Module<'_>]) -> Option<Self> {
        let mut layers = after.iter().filter(|module| !passes(module));
        let norm = layers.next().filter(|layer| layer.kind == "LayerNorm")?;
        let pooler = after.iter().any(|module| module.kind.ends_with("Pooler"));
        let pooled = |layer: &Module<'_>| pooler && matches!(layer.name, "dense" | "activation");
        let (mut labels, mut left_out) = (Vec::new(), 0u64);
        for layer in layers {
            match pooled(layer) {
                true => left_out = left_out.saturating_add(layer.own_parameters()?),
                false => labels.push(layer.product()?.1),
            }
        }
        let classifiers = labels.len() as u32;
        Some(Ending { head: head(&labels)?, classifiers, mean: norm.name == "fc_norm", left_out })
    }
}

/// Parameters that have no line of their own: tables, and the product for all three of `MultiheadAttention`.
fn unlisted(vit: &Vit) -> u64 {
    let wide = u64::from(vit.width);
    let packed = if vit.projection == Projection::Turned { 3 * wide * (wide + 1) } else { 0 };
    vit.tables() + u64::from(vit.layers) * packed
}

/// Patches along a side, from the numbers that the table of positions must have for the tree's count to be right.
fn counted_side(tree: &Tree<'_>, vit: &Vit, left_out: u64) -> Option<u32> {
    let rest = vit.graph(&Options::default()).parameters().saturating_sub(vit.tables());
    let tables = tree.counted?.checked_sub(rest)?.checked_sub(left_out)?;
    let rows = tables
        .checked_div(vit.width.into())
        .filter(|rows| rows * u64::from(vit.width) == tables)?;
    let patches = u32::try_from(rows).ok()?.checked_sub(2 * vit.extra)?;
    let side = patches.isqrt();
    (side > 0 && side * side == patches).then_some(side)
}

/// What a tree leaves open.
fn assumptions(vit: &Vit, counted: bool) -> Vec<String> {
    let mut assumed = vec![format!("no line tells the number of heads; taken to be {}", vit.heads)];
    if !counted {
        assumed.push(format!(
            "no line tells the size of an image; taken to be {USUAL_SIDE}x{USUAL_SIDE}; print with torchinfo to tell"
        ));
    }
    if vit.eager {
        let detail =
            "attention is taken to keep its scores, as releases do that print such a layer";
        assumed.push(detail.to_owned());
    }
    assumed
}

#[cfg(test)]
mod tests;
