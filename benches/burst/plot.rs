//! Plots delay by rank as an SVG, on a logarithmic scale.

use std::path::Path;

use plotters::prelude::*;

use crate::report::Sample;

/// The plotted cases, with their colours.
const DRAWN: [(&str, RGBColor); 6] = [
    ("in-tree-default/10", RGBColor(178, 34, 34)),
    ("in-tree-tuned/one", RGBColor(244, 164, 96)),
    ("in-tree-tuned/10", RGBColor(230, 120, 20)),
    ("ours/one", RGBColor(120, 170, 230)),
    ("ours/10", RGBColor(20, 90, 180)),
    ("floor-32/10", RGBColor(120, 120, 120)),
];

/// Plots each case's round of the median p99; nothing if none of the cases ran.
pub fn write(samples: &[Sample], path: &Path) -> Result<(), String> {
    let curves: Vec<(&Sample, RGBColor)> =
        DRAWN.iter().filter_map(|(case, colour)| Some((median_round(samples, case)?, *colour))).collect();
    if curves.is_empty() {
        return Ok(());
    }
    draw(&curves, path).map_err(|why| format!("draw {}: {why}", path.display()))
}

fn median_round<'a>(samples: &'a [Sample], case: &str) -> Option<&'a Sample> {
    let mut rounds: Vec<&Sample> = samples.iter().filter(|sample| sample.case == case).collect();
    rounds.sort_unstable_by(|a, b| a.percentile(0.99).total_cmp(&b.percentile(0.99)));
    rounds.get(rounds.len() / 2).copied()
}

#[allow(clippy::cast_precision_loss)]
fn draw(curves: &[(&Sample, RGBColor)], path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let ranks = curves.iter().map(|(sample, _)| sample.skews.len()).max().unwrap_or(1) as f64;
    let slowest = curves.iter().map(|(sample, _)| sample.last()).fold(1.0, f64::max);
    let fastest = curves.iter().map(|(sample, _)| sample.percentile(0.0)).fold(1.0, f64::min).max(0.001);
    let root = SVGBackend::new(path, (860, 460)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .caption("Delay from the due instant to the Job, all CronJobs due at once", ("sans-serif", 18))
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..ranks, (fastest * 0.8..slowest * 1.3).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("Jobs created")
        .y_desc("seconds after the due instant")
        .y_label_formatter(&|value| format!("{value}"))
        .x_label_formatter(&|value| format!("{value:.0}"))
        .light_line_style(RGBColor(240, 240, 240))
        .x_max_light_lines(1)
        .draw()?;
    for (sample, colour) in curves {
        let style = colour.stroke_width(2);
        // A few hundred points give the same line as thousands.
        let step = sample.skews.len().div_ceil(300).max(1);
        let last = sample.skews.len() - 1;
        let points = sample.skews.iter().enumerate().filter(|(rank, _)| rank % step == 0 || *rank == last);
        let line = LineSeries::new(points.map(|(rank, skew)| ((rank + 1) as f64, skew.max(0.0001))), style);
        let namespaces = crate::cases::namespaces(sample.namespaces);
        chart
            .draw_series(line)?
            .label(format!("{}, {namespaces}", sample.title))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    root.present()?;
    Ok(())
}
