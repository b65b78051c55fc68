//! The frame around a page's data: template, styles, scripts, and the escaping that keeps them apart.

use serde::Serialize;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const CHARTS: &str = include_str!("charts.js");

/// A page with `data` inside, drawn by the shared charts and then by `scripts` in their order.
pub(super) fn page(title: &str, data: &impl Serialize, scripts: &[&str]) -> String {
    let code = format!("{CHARTS}\n{}", scripts.join("\n"));
    let title = escape_html(title);
    let data = embeddable_json(data);
    fill(TEMPLATE, &[("title", &title), ("style", STYLE), ("data", &data), ("code", &code)])
}

/// Text that can stand in an element or a quoted attribute.
fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// JSON that can stand inside a `script` element: nothing in it ends the element or opens a comment.
fn embeddable_json(data: &impl Serialize) -> String {
    // The types of this module have string keys and plain values only, so this does not fail; should
    // one ever do, the page says that it has no data instead of taking the command down with it.
    let json = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    let mut safe = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            other => safe.push(other),
        }
    }
    safe
}

/// Puts values in place of `{{name}}` in one pass, so that a value that looks like a mark stays text.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(
        template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>(),
    );
    let mut rest = template;
    while let Some((before, from_name)) = rest.split_once("{{") {
        filled.push_str(before);
        let Some((name, after)) = from_name.split_once("}}") else {
            filled.push_str("{{");
            rest = from_name;
            continue;
        };
        if let Some((_, value)) = values.iter().find(|(known, _)| *known == name) {
            filled.push_str(value);
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn text_cannot_leave_its_element_or_attribute() {
        assert_eq!(
            escape_html(r#"<b title="x">Tom's & more</b>"#),
            "&lt;b title=&quot;x&quot;&gt;Tom&#39;s &amp; more&lt;/b&gt;"
        );
    }

    #[test]
    fn json_cannot_end_its_script_and_still_means_the_same() {
        let hostile = json!({"name": "</script><!--<script>\u{2028}\u{2029}&\"'\\"});
        let safe = embeddable_json(&hostile);
        for forbidden in ["<", ">", "&", "\u{2028}", "\u{2029}"] {
            assert!(!safe.contains(forbidden), "{forbidden:?} in {safe}");
        }
        assert_eq!(serde_json::from_str::<Value>(&safe).unwrap(), hostile);
    }

    #[test]
    fn numbers_that_json_cannot_hold_become_null() {
        assert_eq!(embeddable_json(&[f64::NAN, f64::INFINITY, 1.5]), "[null,null,1.5]");
    }

    #[test]
    fn a_value_that_looks_like_a_mark_stays_text() {
        let values = [("a", "{{b}}"), ("b", "B")];
        assert_eq!(fill("1 {{a}} 2 {{b}} 3 {{unknown}} 4 {{", &values), "1 {{b}} 2 B 3  4 {{");
    }

    #[test]
    fn every_part_of_the_page_is_in_its_place() {
        let page = page("A <title>", &json!({"answer": 42}), &["draw(page);"]);
        assert!(page.contains("<title>A &lt;title&gt;</title>"));
        assert!(page.contains(r#"{"answer":42}"#));
        assert!(page.contains("draw(page);"));
        assert!(!page.contains("{{"), "a mark was left unfilled");
    }

    #[test]
    fn assets_cannot_end_the_element_that_holds_them() {
        let scripts = [
            CHARTS,
            include_str!("gantt.js"),
            include_str!("timeline.js"),
            include_str!("distribution.js"),
            include_str!("compare.js"),
            include_str!("collocate.js"),
            include_str!("usage.js"),
        ];
        for script in scripts {
            assert!(!script.contains("</script") && !script.contains("<!--"));
            assert!(!script.contains("{{"), "would be taken for a mark of the template");
        }
        assert!(!STYLE.contains("</style"));
    }

    #[test]
    fn a_page_asks_the_network_for_nothing() {
        let page = page("t", &json!({}), &[]);
        assert!(page.contains("default-src 'none'"));
        for address in ["src=", "href=\"http", "@import", "fetch(", "XMLHttpRequest"] {
            assert!(!page.contains(address), "{address} in the page");
        }
    }
}
