//! The time of a critical section, as measured: two percentiles, or a list of durations. Pure.

use std::f64::consts::TAU;

use sim::Span;
use sim::entropy::Site;

/// The 99th and the 99.9th percentile of the normal distribution.
const Z_99: f64 = 2.326_348;
const Z_99_9: f64 = 3.090_232;

/// The time of a critical section.
#[derive(Clone, Debug, PartialEq)]
pub struct Work(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// The median and the 99th percentile, of which the first is above zero and not above the second.
    Percentiles { p50: Span, p99: Span },
    /// Durations in nanoseconds, in order of length, at least one.
    Durations(Vec<u64>),
}

/// A text that does not say how long the work takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// Not two lengths of time.
    #[error("`{0}` is no pair of times: write the median and the 99th percentile, such as 200ms,800ms")]
    NoPair(String),
    /// One of the two is no length of time.
    #[error(transparent)]
    Span(#[from] sim::SpanError),
    /// The median is zero: no distribution follows.
    #[error("the median of the work is 0s: measure it in smaller units, such as 150us")]
    Zero,
    /// The percentiles are out of order.
    #[error("the median {p50} is above the 99th percentile {p99}: write the median first")]
    Order {
        /// The first of the two.
        p50: Span,
        /// The second.
        p99: Span,
    },
    /// A line is no duration.
    #[error("line {line}: `{text}` is no duration: write milliseconds, one number a line, such as 12.5")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// No line has a duration.
    #[error("it has no duration: write milliseconds, one number a line")]
    Empty,
}

impl Work {
    /// Parses the median and the 99th percentile, such as `200ms,800ms`.
    ///
    /// # Errors
    ///
    /// [`WorkError`] if they are not two lengths of time in order, the first above zero.
    pub fn percentiles(text: &str) -> Result<Self, WorkError> {
        let (p50, p99) = text.split_once(',').ok_or_else(|| WorkError::NoPair(text.to_owned()))?;
        let (p50, p99): (Span, Span) = (p50.trim().parse()?, p99.trim().parse()?);
        if p50.is_zero() {
            return Err(WorkError::Zero);
        }
        if p50 > p99 {
            return Err(WorkError::Order { p50, p99 });
        }
        Ok(Self(Kind::Percentiles { p50, p99 }))
    }

    /// Parses durations in milliseconds, one a line. Empty lines and those that begin with `#` have none.
    ///
    /// # Errors
    ///
    /// [`WorkError`] with the first line that is no duration, or if there is none.
    pub fn durations(text: &str) -> Result<Self, WorkError> {
        let mut durations = Vec::new();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let millis: Option<f64> = line.parse().ok().filter(|millis| (0.0..1e12).contains(millis));
            let bad = || WorkError::Line { line: number, text: line.to_owned() };
            durations.push((millis.ok_or_else(bad)? * 1e6) as u64);
        }
        if durations.is_empty() {
            return Err(WorkError::Empty);
        }
        durations.sort_unstable();
        Ok(Self(Kind::Durations(durations)))
    }

    /// Returns the number of durations that were measured; `None` if only percentiles are known.
    pub fn measurements(&self) -> Option<usize> {
        match &self.0 {
            Kind::Percentiles { .. } => None,
            Kind::Durations(durations) => Some(durations.len()),
        }
    }

    /// Returns the median.
    pub fn p50(&self) -> Span {
        match &self.0 {
            Kind::Percentiles { p50, .. } => *p50,
            Kind::Durations(durations) => nearest_rank(durations, 500),
        }
    }

    /// Returns the 99th percentile.
    pub fn p99(&self) -> Span {
        match &self.0 {
            Kind::Percentiles { p99, .. } => *p99,
            Kind::Durations(durations) => nearest_rank(durations, 990),
        }
    }

    /// Returns the 99.9th percentile: of fewer than 1,000 durations the longest, of percentiles that of the
    /// log-normal distribution through both.
    pub fn p99_9(&self) -> Span {
        match &self.0 {
            Kind::Percentiles { p50, p99 } => at(*p50, *p99, Z_99_9),
            Kind::Durations(durations) => nearest_rank(durations, 999),
        }
    }

    /// Draws a time: one of the durations, or from the log-normal distribution through the percentiles.
    pub(super) fn draw(&self, site: &mut Site) -> Span {
        // Both forms take two numbers of the site.
        let (first, second) = (unit(site), unit(site));
        match &self.0 {
            Kind::Percentiles { p50, p99 } => {
                // Box and Muller, "A note on the generation of random normal deviates" (1958).
                at(*p50, *p99, (-2.0 * (1.0 - first).ln()).sqrt() * (TAU * second).cos())
            }
            Kind::Durations(durations) => {
                let number = (first * durations.len() as f64) as usize;
                in_micros(durations[number.min(durations.len() - 1)] as f64)
            }
        }
    }
}

/// Draws a number from 0 to 1, without 1.
pub(super) fn unit(site: &mut Site) -> f64 {
    (site.u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Rounds nanoseconds to whole microseconds.
pub(super) fn in_micros(nanos: f64) -> Span {
    Span::from_nanos((nanos / 1e3).round() as u64 * 1000)
}

/// Returns the value of the log-normal distribution through both percentiles at `z` standard deviations.
fn at(p50: Span, p99: Span, z: f64) -> Span {
    let (p50, p99) = (p50.as_nanos() as f64, p99.as_nanos() as f64);
    in_micros(p50 * (p99 / p50).powf(z / Z_99))
}

/// Returns the smallest duration that at least this share of all, in thousandths, does not exceed.
fn nearest_rank(durations: &[u64], per_mille: usize) -> Span {
    let rank = (durations.len() * per_mille).div_ceil(1000).clamp(1, durations.len());
    in_micros(durations[rank - 1] as f64)
}

#[cfg(test)]
mod tests {
    use sim::entropy::Entropy;

    use super::*;

    fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    #[test]
    fn percentiles_have_a_tail_beyond_them() {
        let work = Work::percentiles("200ms,800ms").unwrap();
        assert_eq!((work.p50(), work.p99()), (ms(200), ms(800)));
        // 200 ms times 4 to the power of 3.090232 / 2.326348.
        assert_eq!(work.p99_9(), Span::from_nanos(1_261_199_000));
        let even = Work::percentiles("1s,1s").unwrap();
        assert_eq!(even.p99_9(), Span::from_secs(1));
    }

    #[test]
    fn durations_are_ranked() {
        let text: String = (1..=2000).map(|millis| format!("{millis}\n")).rev().collect();
        let work = Work::durations(&format!("# of one day\n\n{text}")).unwrap();
        assert_eq!((work.p50(), work.p99(), work.p99_9()), (ms(1000), ms(1980), ms(1998)));
        assert_eq!(work.measurements(), Some(2000));
        assert_eq!(Work::durations("0.25").unwrap().p99_9(), Span::from_nanos(250_000));
    }

    #[test]
    fn draws_have_the_percentiles() {
        for work in [Work::percentiles("200ms,800ms"), Work::durations("100\n200\n200\n800")] {
            let work = work.unwrap();
            let mut site = Entropy::new(1).site("work");
            let mut drawn: Vec<_> = (0..10_000).map(|_| work.draw(&mut site)).collect();
            drawn.sort_unstable();
            let (median, p99) = (drawn[5000].as_nanos() as f64 / 2e8, drawn[9900].as_nanos() as f64 / 8e8);
            assert!((0.95..1.05).contains(&median) && (0.9..1.1).contains(&p99), "{median} {p99} {work:?}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text| Work::percentiles(text).unwrap_err().to_string();
        assert!(error("200ms").contains("`200ms` is no pair of times"), "{}", error("200ms"));
        assert!(error("200ms,8").contains("`8` is no span of time"), "{}", error("200ms,8"));
        assert!(error("800ms,200ms").contains("write the median first"), "{}", error("800ms,200ms"));
        assert!(error("0s,1s").contains("the median of the work is 0s"), "{}", error("0s,1s"));
        for (text, line) in [("1\n2s", 2), ("-1", 1), ("NaN", 1), ("1\n\n1e15", 3)] {
            let error = Work::durations(text).unwrap_err();
            assert!(matches!(error, WorkError::Line { line: found, .. } if found == line), "{error}");
        }
        assert_eq!(Work::durations("# nothing\n"), Err(WorkError::Empty));
    }
}
