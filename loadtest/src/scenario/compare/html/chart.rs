//! A line chart as SVG.

use std::fmt::Write as _;

use super::escaped;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 32.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 44.0;

/// The approximate number of marks on a linear axis.
const N_MARKS: f64 = 6.0;

/// The estimated width of a letter, to place the names of series in a row.
const LETTER_WIDTH: f64 = 6.4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    Logarithmic,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    title: &'static str,
    scale: Scale,
}

impl Axis {
    pub(super) fn linear(title: &'static str) -> Axis {
        Axis {
            title,
            scale: Scale::Linear,
        }
    }

    pub(super) fn logarithmic(title: &'static str) -> Axis {
        Axis {
            title,
            scale: Scale::Logarithmic,
        }
    }
}

/// A line. If a controller has several, only the first has a name.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: Option<String>,
    pub(super) colour: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

/// A vertical line with a name.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) x: f64,
}

/// A named range of the horizontal axis.
#[derive(Clone, Debug)]
pub(super) struct Band {
    pub(super) name: String,
    pub(super) begin: f64,
    pub(super) end: f64,
}

/// A line chart.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
    pub(super) lines: Vec<Line>,
    pub(super) bands: Vec<Band>,
    /// Whether a figure holds until the next one, such as a count per second.
    pub(super) is_stepped: bool,
}

/// An axis with its range and its position in the drawing.
#[derive(Clone, Copy, Debug)]
struct Ruler {
    scale: Scale,
    lowest: f64,
    highest: f64,
    /// The positions of both ends in the drawing.
    begin: f64,
    end: f64,
}

impl Ruler {
    /// Returns `None` without figures.
    fn of(axis: Axis, figures: &[f64], ends: (f64, f64)) -> Option<Ruler> {
        let lowest = figures.iter().copied().reduce(f64::min)?;
        let highest = figures.iter().copied().reduce(f64::max)?;
        let (lowest, highest) = match axis.scale {
            Scale::Linear => (lowest, highest),
            Scale::Logarithmic => (10_f64.powf(lowest.log10().floor()), 10_f64.powf(highest.log10().ceil())),
        };
        Some(Ruler {
            scale: axis.scale,
            lowest,
            // An empty range cannot be drawn.
            highest: if highest > lowest { highest } else { lowest + 1.0 },
            begin: ends.0,
            end: ends.1,
        })
    }

    fn place(&self, figure: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (figure - self.lowest) / (self.highest - self.lowest),
            Scale::Logarithmic => (figure / self.lowest).log10() / (self.highest / self.lowest).log10(),
        };
        self.begin + share.clamp(0.0, 1.0) * (self.end - self.begin)
    }

    /// Round figures within the range.
    fn marks(&self) -> Vec<f64> {
        let mut marks = Vec::new();
        match self.scale {
            Scale::Linear => {
                let step = round_step((self.highest - self.lowest) / N_MARKS);
                let mut number = (self.lowest / step).ceil();
                while number * step <= self.highest * (1.0 + f64::EPSILON) {
                    // The addition turns -0 into 0.
                    marks.push(number * step + 0.0);
                    number += 1.0;
                }
            }
            Scale::Logarithmic => {
                let mut mark = self.lowest;
                while mark <= self.highest * 1.001 {
                    marks.push(mark);
                    mark *= 10.0;
                }
            }
        }
        marks
    }
}

/// The first mark of an axis from 0 that is at least `highest`.
fn above(highest: f64) -> f64 {
    if highest > 0.0 {
        let step = round_step(highest / N_MARKS);
        (highest / step).ceil() * step
    } else {
        0.0
    }
}

/// 1, 2 or 5 times a power of ten, at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|factor| factor * power >= step * 0.999_999);
    factor.unwrap_or(10.0) * power
}

impl Chart {
    /// Renders the chart, or a sentence if there is nothing to draw.
    pub(super) fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| series.points.iter());
        let mut xs: Vec<f64> = points().map(|point| point.0).collect();
        let mut ys: Vec<f64> = points().map(|point| point.1).collect();
        // Vertical lines extend the axis only if there are figures.
        if !xs.is_empty() {
            xs.extend(self.lines.iter().map(|line| line.x));
            // From 0 to the mark above the highest figure, so that no line runs along the edge.
            let highest = ys.iter().copied().fold(0.0, f64::max);
            ys.extend([0.0, above(highest)]);
        }
        let rulers = (
            Ruler::of(self.x, &xs, (LEFT, WIDTH - RIGHT)),
            Ruler::of(self.y, &ys, (HEIGHT - BOTTOM, TOP)),
        );
        let (Some(x), Some(y)) = rulers else {
            return "<p>Nothing was measured.</p>".to_owned();
        };
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{} by {}\">",
            escaped(self.y.title),
            escaped(self.x.title)
        );
        // Writing to a string cannot fail.
        let _ = self.write_bands(&mut svg, x);
        let _ = self.write_axes(&mut svg, x, y);
        let _ = self.write_series(&mut svg, x, y);
        let _ = self.write_lines(&mut svg, x);
        svg.push_str("</svg>");
        svg
    }

    fn write_bands(&self, svg: &mut String, x: Ruler) -> std::fmt::Result {
        for (number, band) in self.bands.iter().enumerate() {
            let (begin, end) = (x.place(band.begin), x.place(band.end));
            let colour = if number % 2 == 0 { "#f4f4f4" } else { "#e9eef3" };
            write!(
                svg,
                "<rect x=\"{begin:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
                end - begin,
                HEIGHT - BOTTOM - TOP,
            )?;
            // A name wider than its band would overlap the next one.
            if text_width(&band.name) < end - begin {
                write!(
                    svg,
                    "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                    begin + 4.0,
                    TOP + 14.0,
                    escaped(&band.name)
                )?;
            }
        }
        Ok(())
    }

    fn write_axes(&self, svg: &mut String, x: Ruler, y: Ruler) -> std::fmt::Result {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for mark in y.marks() {
            let place = y.place(mark);
            write!(
                svg,
                "<path d=\"M{LEFT} {place:.1}H{right}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                place + 4.0,
                figure_text(mark)
            )?;
        }
        for mark in x.marks() {
            let place = x.place(mark);
            write!(
                svg,
                "<path d=\"M{place:.1} {bottom}v5\" stroke=\"#888\"/>\
                 <text x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 18.0,
                figure_text(mark)
            )?;
        }
        write!(
            svg,
            "<path d=\"M{LEFT} {bottom}H{right}\" stroke=\"#888\"/>\
             <text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <text x=\"4\" y=\"12\">{}</text>",
            HEIGHT - 6.0,
            escaped(self.x.title),
            escaped(self.y.title)
        )
    }

    fn write_lines(&self, svg: &mut String, x: Ruler) -> std::fmt::Result {
        for (number, line) in (0_u8..).zip(&self.lines) {
            let place = x.place(line.x);
            // The names of lines are staggered, because lines may be close together. They start below the names of
            // bands.
            let row = f64::from(number % 4 + u8::from(!self.bands.is_empty()));
            write!(
                svg,
                "<path d=\"M{place:.1} {TOP}V{:.1}\" stroke=\"#b00020\" stroke-dasharray=\"4 3\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
                HEIGHT - BOTTOM,
                place + 4.0,
                TOP + 14.0 + 14.0 * row,
                escaped(&line.name)
            )?;
        }
        Ok(())
    }

    /// The points of the line. With steps, these are the corners.
    fn drawn_points(&self, series: &Series) -> Vec<(f64, f64)> {
        if !self.is_stepped {
            return series.points.clone();
        }
        let first = series.points.first().copied();
        let corners = series
            .points
            .windows(2)
            .flat_map(|pair| [(pair[1].0, pair[0].1), pair[1]]);
        first.into_iter().chain(corners).collect()
    }

    fn write_series(&self, svg: &mut String, x: Ruler, y: Ruler) -> std::fmt::Result {
        let mut name_at = LEFT;
        for series in &self.series {
            let place =
                |(figure_x, figure_y): &(f64, f64)| format!("{:.1},{:.1}", x.place(*figure_x), y.place(*figure_y));
            let points: Vec<String> = self.drawn_points(series).iter().map(place).collect();
            write!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>",
                points.join(" "),
                series.colour
            )?;
            if let Some(name) = &series.name {
                write!(
                    svg,
                    "<path d=\"M{name_at:.1} 26h16\" stroke=\"{}\" stroke-width=\"3\"/>\
                     <text x=\"{:.1}\" y=\"30\">{}</text>",
                    series.colour,
                    name_at + 20.0,
                    escaped(name)
                )?;
                name_at += 44.0 + text_width(name);
            }
        }
        Ok(())
    }
}

fn text_width(text: &str) -> f64 {
    LETTER_WIDTH * f64::from(u32::try_from(text.chars().count()).unwrap_or_default())
}

/// Formats a mark. Marks are round, so three decimals remove only rounding errors.
fn figure_text(figure: f64) -> String {
    let text = format!("{figure:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
#[path = "chart/tests.rs"]
mod tests;
