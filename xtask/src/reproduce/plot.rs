//! Line charts as small SVG files: fixed size, fixed digits, so the same numbers give the same bytes.

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 160.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 40.0;
/// Colours that can be told apart on light and dark, also by the colour-blind.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

pub(super) struct Series {
    pub(super) name: String,
    /// One value for each mark of the x axis.
    pub(super) values: Vec<f64>,
}

/// A chart with the given marks on the x axis, y from zero.
pub(super) fn lines(title: &str, x_title: &str, marks: &[String], series: &[Series]) -> String {
    let highest = series.iter().flat_map(|s| s.values.iter().copied()).fold(0.0, f64::max);
    let step = nice_step(highest);
    let top = (highest / step).ceil() * step;
    let (inner_width, inner_height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let x = |index: usize| LEFT + inner_width * index as f64 / (marks.len().max(2) - 1) as f64;
    let y = |value: f64| TOP + inner_height * (1.0 - value / top);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"14\">{title}</text>\n"
    );
    let mut value = 0.0;
    while value <= top + step / 2.0 {
        let at = y(value);
        let end = WIDTH - RIGHT;
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {at:.1}H{end}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            LEFT - 6.0,
            at + 4.0
        );
        value += step;
    }
    for (index, mark) in marks.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{mark}</text>",
            x(index),
            HEIGHT - BOTTOM + 16.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{x_title}</text>",
        LEFT + inner_width / 2.0,
        HEIGHT - 6.0
    );
    for (index, Series { name, values }) in series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let points: Vec<String> =
            values.iter().enumerate().map(|(i, &v)| format!("{:.1},{:.1}", x(i), y(v))).collect();
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
            points.join(" ")
        );
        let at = TOP + 16.0 * index as f64 + 8.0;
        let from = WIDTH - RIGHT + 10.0;
        let _ = writeln!(
            svg,
            "<path d=\"M{from} {at}h16\" stroke=\"{colour}\" stroke-width=\"2\"/><text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            from + 22.0,
            at + 4.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// A round distance between lines, for about five of them.
fn nice_step(highest: f64) -> f64 {
    let rough = (highest / 5.0).max(1e-9);
    let power = 10f64.powi(rough.log10().floor() as i32);
    let round = [1.0, 2.0, 5.0, 10.0].into_iter().find(|unit| unit * power >= rough);
    round.unwrap_or(10.0) * power
}
