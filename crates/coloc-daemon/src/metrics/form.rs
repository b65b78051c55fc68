//! The two text forms of a page. The crate writes OpenMetrics; Prometheus' older form differs in a few lines, and is what
//! `promtool check metrics`, `curl` and older scrapers read.

/// What a scraper is told that a page is.
pub(super) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The same of the older form.
pub(super) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether a scraper asks for OpenMetrics.
pub(super) fn wants_open_metrics(accept: &str) -> bool {
    accept.split(',').any(|kind| kind.trim().starts_with("application/openmetrics-text"))
}

/// A page in the older form: a counter's family has the name of its series, and nothing marks the end. Labels cannot
/// hold a line of their own, since newlines in them are escaped.
pub(super) fn older(page: &str) -> String {
    let mut out = String::with_capacity(page.len() + 1024);
    let mut help: Option<(&str, &str)> = None;
    for line in page.lines() {
        let mut words = line.splitn(4, ' ');
        let (mark, kind) = (words.next(), words.next());
        match (mark, kind, words.next(), words.next()) {
            // The kind of a family, which decides on its name, follows its help.
            (Some("#"), Some("HELP"), Some(name), text) => help = Some((name, text.unwrap_or(""))),
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                let suffix = if kind == "counter" { "_total" } else { "" };
                if let Some((_, text)) = help.take().filter(|(of, _)| *of == name) {
                    out.push_str(&format!("# HELP {name}{suffix} {text}\n"));
                }
                out.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
            }
            (Some("#"), Some("EOF" | "UNIT"), ..) => {}
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_gets_the_form_that_it_asks_for() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        assert!(wants_open_metrics(prometheus));
        assert!(!wants_open_metrics("*/*") && !wants_open_metrics(""));
    }

    #[test]
    fn the_older_form_names_counters_as_their_series() {
        let page = "# HELP a_b What it is.\n# TYPE a_b counter\na_b_total{x=\"# EOF\"} 1\n# HELP c C.\n# TYPE c gauge\nc 2\n# EOF\n";
        let older = older(page);
        assert_eq!(
            older,
            "# HELP a_b_total What it is.\n# TYPE a_b_total counter\na_b_total{x=\"# EOF\"} 1\n# HELP c C.\n# TYPE c gauge\nc 2\n"
        );
    }
}
