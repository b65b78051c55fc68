//! A tree of names and values, written as indented text or as XML.

/// The column of the colons.
const COLON: usize = 42;

/// A value, or more of them under one name.
pub(super) struct Node {
    /// In text; a group without one has no line of its own.
    name: &'static str,
    /// In XML.
    tag: &'static str,
    /// What tells it from others of its name.
    id: Option<String>,
    /// It is about the value before it: text shows it further in.
    inset: bool,
    content: Content,
}

enum Content {
    Value(String),
    Parts(Vec<Node>),
}

/// A value.
pub(super) fn leaf(name: &'static str, tag: &'static str, value: impl Into<String>) -> Node {
    Node { name, tag, id: None, inset: false, content: Content::Value(value.into()) }
}

/// Several under one name.
pub(super) fn group(name: &'static str, tag: &'static str, parts: Vec<Node>) -> Node {
    Node { name, tag, id: None, inset: false, content: Content::Parts(parts) }
}

impl Node {
    /// One of several with the same name.
    pub(super) fn named(self, id: String) -> Node {
        Node { id: Some(id), ..self }
    }

    /// Keeps the parts whose tags are wanted.
    pub(super) fn keep(&mut self, wanted: impl Fn(&str) -> bool) {
        if let Content::Parts(parts) = &mut self.content {
            parts.retain(|part| wanted(part.tag));
        }
    }

    /// It is about the value before it.
    pub(super) fn inset(self) -> Node {
        Node { inset: true, ..self }
    }
}

/// As indented text.
pub(super) fn text(nodes: &[Node]) -> String {
    let mut lines = Vec::new();
    write_text(nodes, 0, &mut lines);
    lines.join("\n")
}

fn write_text(nodes: &[Node], depth: usize, lines: &mut Vec<String>) {
    for node in nodes {
        let depth = depth + usize::from(node.inset);
        let indent = " ".repeat(4 * depth);
        match &node.content {
            Content::Value(value) => {
                let width = COLON.saturating_sub(indent.len());
                lines.push(format!("{indent}{:<width$}: {value}", node.name));
            }
            Content::Parts(parts) if node.name.is_empty() => write_text(parts, depth, lines),
            Content::Parts(parts) => {
                if let Some(id) = &node.id {
                    lines.push(String::new());
                    lines.push(format!("{indent}{} {id}", node.name));
                } else {
                    lines.push(format!("{indent}{}", node.name));
                }
                write_text(parts, depth + 1, lines);
            }
        }
    }
}

/// As XML.
pub(super) fn xml(nodes: &[Node]) -> String {
    let mut lines = Vec::new();
    write_xml(nodes, 0, &mut lines);
    lines.join("\n")
}

fn write_xml(nodes: &[Node], depth: usize, lines: &mut Vec<String>) {
    let indent = "\t".repeat(depth);
    for Node { tag, id, content, .. } in nodes {
        let id = id.as_ref().map_or(String::new(), |id| format!(" id=\"{}\"", escaped(id)));
        match content {
            Content::Value(value) => {
                lines.push(format!("{indent}<{tag}{id}>{}</{tag}>", escaped(value)));
            }
            Content::Parts(parts) => {
                lines.push(format!("{indent}<{tag}{id}>"));
                write_xml(parts, depth + 1, lines);
                lines.push(format!("{indent}</{tag}>"));
            }
        }
    }
}

/// Text that XML can hold. What it cannot hold at all is left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(character),
            control if control.is_control() => {}
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tree_is_written_in_two_ways() {
        let parts = vec![
            leaf("Name", "name", "a <b> & \"c\"\u{1}"),
            group("", "list", vec![leaf("Pid", "pid", "7"), leaf("Type", "type", "C").inset()]),
        ];
        let tree = [group("GPU", "gpu", parts).named("0:7".to_owned())];
        let colon = |name: &str, indent: usize| {
            format!("{}{name:<width$}: ", " ".repeat(indent), width = COLON - indent)
        };
        let expected = format!(
            "\nGPU 0:7\n{}a <b> & \"c\"\u{1}\n{}7\n{}C",
            colon("Name", 4),
            colon("Pid", 4),
            colon("Type", 8)
        );
        assert_eq!(text(&tree), expected);
        assert_eq!(
            xml(&tree),
            "<gpu id=\"0:7\">\n\t<name>a &lt;b&gt; &amp; &quot;c&quot;</name>\n\t<list>\n\t\t<pid>7</pid>\n\t\t<type>C</type>\n\t</list>\n</gpu>"
        );
    }
}
