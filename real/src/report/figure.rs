//! Draws curves as SVG.
//!
//! A page may have a light or a dark background, which an image can't detect: the figure has no background,
//! and all colours are of medium lightness.

use std::ops::Range;

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

const SIZE: (u32, u32) = (760, 420);
/// The colour of axes and labels.
const INK: RGBColor = RGBColor(0x80, 0x86, 0x8c);
/// From Okabe and Ito, "Color Universal Design" (2008): colours that people with any colour vision can
/// distinguish, on white and on black; and two more, since a median and a tail of four systems make eight
/// lines.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x00, 0x82, 0xc8),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xc4, 0x8a, 0x00),
    RGBColor(0x56, 0x96, 0xd9),
    RGBColor(0x8c, 0x56, 0x4b),
    RGBColor(0x7f, 0x7f, 0x7f),
];
/// The start of a logarithmic axis, where a value is zero.
const LOG_FLOOR: f64 = 1e-6;

/// The logarithms of 1, 2 and 5: where a logarithmic axis may begin and end.
const STEPS: [f64; 3] = [0.0, std::f64::consts::LOG10_2, 1.0 - std::f64::consts::LOG10_2];
/// Numbers from here on are written in millions, with an M: an axis has no room for more digits.
const MILLION: f64 = 1e6;
/// The share of the frame's width and height that a legend may need.
const LEGEND_SHARE: (f64, f64) = (0.4, 0.4);
/// An axis of at most this many powers of ten is also marked at 2 and 5 times each.
const DECADES_WITH_STEPS: f64 = 2.5;

/// A figure: curves in one frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The name of its file in docs/figures/, without the extension.
    pub name: String,
    /// Its caption, as a sentence.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub lines: Vec<Line>,
}

/// An axis. Its label must be ASCII.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The quantity and its unit.
    pub label: String,
    /// The scale.
    pub scale: Scale,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear, from zero.
    Linear,
    /// Logarithmic.
    Log,
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// An axis as it is drawn: positions are values, or their logarithms.
struct Ruler {
    scale: Scale,
    positions: RangedCoordf64,
}

impl Figure {
    /// Returns the path of its file, relative to the folder of the page.
    pub fn file(&self) -> String {
        format!("figures/{}.svg", self.name)
    }

    /// Draws the figure as SVG.
    ///
    /// # Errors
    ///
    /// The message of the drawing library.
    pub fn svg(&self) -> Result<String, String> {
        let mut text = String::new();
        {
            let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            self.draw(&area).map_err(|error| format!("figure {}: {error}", self.name))?;
            area.present().map_err(|error| format!("figure {}: {error}", self.name))?;
        }
        Ok(text)
    }

    fn draw<D: DrawingBackend>(
        &self,
        area: &DrawingArea<D, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<D::ErrorType>> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let (x, y) = (
            Ruler::over(self.x.scale, points().map(|point| point.0)),
            Ruler::over(self.y.scale, points().map(|point| point.1)),
        );
        let legend = self.emptiest_corner(&x, &y);
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            // Half of the axis's last number extends beyond it.
            .margin_right(28)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(x, y)?;
        let words = ("sans-serif", 17).into_font().color(&INK);
        chart
            .configure_mesh()
            .axis_style(INK)
            .bold_line_style(INK.mix(0.3))
            .light_line_style(TRANSPARENT)
            .label_style(words.clone())
            .axis_desc_style(words.clone())
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .draw()?;
        for (line, colour) in self.lines.iter().zip(COLOURS.into_iter().cycle()) {
            self.draw_line(&mut chart, line, colour)?;
        }
        chart.configure_series_labels().position(legend).label_font(words).border_style(TRANSPARENT).draw()
    }

    /// Returns the corner with the fewest points; in doubt the upper left, since most of these curves rise.
    fn emptiest_corner(&self, x: &Ruler, y: &Ruler) -> SeriesLabelPosition {
        let corners = [
            (SeriesLabelPosition::UpperLeft, false, true),
            (SeriesLabelPosition::UpperRight, true, true),
            (SeriesLabelPosition::LowerLeft, false, false),
            (SeriesLabelPosition::LowerRight, true, false),
        ];
        let points_in = |is_right, is_upper| {
            let is_there = |&(along, up): &(f64, f64)| {
                let (along, up) = (x.share(along), y.share(up));
                let along = if is_right { 1.0 - along } else { along };
                let up = if is_upper { 1.0 - up } else { up };
                along < LEGEND_SHARE.0 && up < LEGEND_SHARE.1
            };
            self.lines.iter().flat_map(|line| &line.points).filter(|point| is_there(point)).count()
        };
        let emptiest =
            corners.into_iter().min_by_key(|(_, is_right, is_upper)| points_in(*is_right, *is_upper));
        emptiest.map_or(SeriesLabelPosition::UpperLeft, |(corner, ..)| corner)
    }

    fn draw_line<'a, D: DrawingBackend + 'a>(
        &self,
        chart: &mut ChartContext<'a, D, Cartesian2d<Ruler, Ruler>>,
        line: &Line,
        colour: RGBColor,
    ) -> Result<(), DrawingAreaErrorKind<D::ErrorType>> {
        let points =
            || line.points.iter().map(|&(x, y)| (self.x.scale.position(x), self.y.scale.position(y)));
        let series = chart.draw_series(LineSeries::new(points(), colour.stroke_width(2)))?;
        series
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        chart.draw_series(points().map(|point| Circle::new(point, 3, colour.filled())))?;
        Ok(())
    }
}

impl Scale {
    fn position(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(LOG_FLOOR).log10(),
        }
    }
}

impl Ruler {
    fn over(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = values
            .map(|value| scale.position(value))
            .fold(ends, |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = match scale {
            Scale::Linear => (low.min(0.0), if high > 0.0 { high * 1.05 } else { 1.0 }),
            Scale::Log if low <= high => {
                let (low, high) = (step_below(low), step_above(high));
                (low, if low < high { high } else { low + 1.0 })
            }
            Scale::Log => (0.0, 1.0),
        };
        Self { scale, positions: (low..high).into() }
    }

    /// Returns the position of a value on the axis, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let Range { start, end } = self.positions.range();
        (self.scale.position(value) - start) / (end - start)
    }
}

/// Returns the last step at or below a logarithm.
fn step_below(logarithm: f64) -> f64 {
    let decade = logarithm.floor();
    let mut steps = STEPS.iter().map(|step| decade + step).filter(|step| *step <= logarithm);
    steps.next_back().unwrap_or(decade)
}

/// Returns the first step at or above a logarithm.
fn step_above(logarithm: f64) -> f64 {
    let decade = logarithm.floor();
    let mut steps = STEPS.iter().map(|step| decade + step).filter(|step| *step >= logarithm);
    steps.next().unwrap_or(decade + 1.0)
}

impl Ranged for Ruler {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.positions.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match self.scale {
            Scale::Linear => self.positions.key_points(hint),
            Scale::Log => {
                let Range { start, end } = self.positions.range();
                let steps: &[f64] = if end - start > DECADES_WITH_STEPS { &STEPS[..1] } else { &STEPS };
                let decades = std::iter::successors(Some(start.floor()), |decade| Some(decade + 1.0));
                let marks = decades
                    .take_while(|decade| *decade <= end)
                    .flat_map(|decade| steps.iter().map(move |step| decade + step));
                // Two computations of a value may differ in the last digit.
                marks.filter(|mark| (start - 1e-9..=end + 1e-9).contains(mark)).collect()
            }
        }
    }

    fn range(&self) -> Range<f64> {
        self.positions.range()
    }
}

impl ValueFormatter<f64> for Ruler {
    fn format_ext(&self, position: &f64) -> String {
        let value = match self.scale {
            Scale::Linear => *position,
            Scale::Log => 10_f64.powf(*position),
        };
        let (value, unit) = if value >= MILLION { (value / MILLION, "M") } else { (value, "") };
        // To six digits: the rest is rounding error.
        let text = format!("{value:.6}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned() + unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(scale: Scale, points: Vec<(f64, f64)>) -> Figure {
        let axis = |label: &str| Axis { label: label.to_owned(), scale };
        let lines = vec![Line { name: "redis".to_owned(), points }];
        Figure {
            name: "test".to_owned(),
            caption: String::new(),
            x: axis("contenders"),
            y: axis("ms"),
            lines,
        }
    }

    #[test]
    fn an_axis_by_powers_of_ten_is_marked_at_them() {
        let svg = figure(Scale::Log, vec![(50.0, 0.4), (1000.0, 2000.0)]).svg().unwrap();
        // The horizontal axis spans 1.3 powers of ten, from 50 to 1000, the vertical 3.7, from 0.2 to 2000.
        for mark in
            ["\n50\n", "\n100\n", "\n200\n", "\n500\n", "\n1\n", "\n10\n", "\n1000\n", "redis", "contenders"]
        {
            assert!(svg.contains(mark), "{mark}: {svg}");
        }
        for absent in ["\n20\n", "\n5\n", "\n10000\n", "\n0.1\n"] {
            assert!(!svg.contains(absent), "{absent}: {svg}");
        }
    }

    #[test]
    fn millions_are_written_with_an_m() {
        let svg = figure(Scale::Linear, vec![(0.0, 0.0), (800_000.0, 10_000_000.0)]).svg().unwrap();
        for mark in ["\n10M\n", "\n2M\n", "\n800000\n", "\n0\n"] {
            assert!(svg.contains(mark), "{mark}: {svg}");
        }
    }

    #[test]
    fn the_legend_is_where_the_fewest_points_are() {
        let corner = |points: &[(f64, f64)]| {
            let figure = figure(Scale::Linear, points.to_vec());
            let ruler = || Ruler::over(Scale::Linear, [0.0, 10.0].into_iter());
            format!("{:?}", figure.emptiest_corner(&ruler(), &ruler()))
        };
        assert_eq!(corner(&[(1.0, 1.0), (9.0, 9.0)]), "UpperLeft");
        assert_eq!(corner(&[(1.0, 9.0), (5.0, 5.0), (9.0, 1.0)]), "UpperRight");
        assert_eq!(corner(&[(1.0, 9.0), (9.0, 9.0), (9.0, 1.0)]), "LowerLeft");
        assert_eq!(corner(&[(1.0, 9.0), (9.0, 9.0), (1.0, 1.0)]), "LowerRight");
    }

    #[test]
    fn there_is_always_a_picture() {
        for points in [vec![], vec![(0.0, 0.0)], vec![(1.0, 1.0)]] {
            for scale in [Scale::Linear, Scale::Log] {
                let svg = figure(scale, points.clone()).svg().unwrap();
                assert!(svg.ends_with("</svg>\n") || svg.ends_with("</svg>"), "{svg}");
            }
        }
    }
}
