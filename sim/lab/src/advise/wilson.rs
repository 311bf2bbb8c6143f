//! The confidence interval of a share. Pure.

/// The 97.5th percentile of the normal distribution: the interval covers 95 %.
const Z: f64 = 1.959_964;

/// Returns the limits of the 95 % confidence interval of a share of which `hits` of `runs` were seen. It is
/// wide for few runs, and does not end at 0 if nothing was seen.
///
/// Source: Wilson, "Probable inference, the law of succession, and statistical inference" (1927).
pub fn wilson(hits: u64, runs: u64) -> (f64, f64) {
    if runs == 0 {
        return (0.0, 1.0);
    }
    let n = runs as f64;
    let share = hits as f64 / n;
    let scale = 1.0 + Z * Z / n;
    let centre = (share + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns both limits in ten thousandths.
    fn limits(hits: u64, runs: u64) -> (u64, u64) {
        let (low, high) = wilson(hits, runs);
        ((low * 1e4).round() as u64, (high * 1e4).round() as u64)
    }

    /// The values of the literature: Newcombe, "Two-sided confidence intervals for the single proportion"
    /// (1998), table I.
    #[test]
    fn the_interval_is_that_of_the_literature() {
        assert_eq!(limits(81, 263), (2553, 3662));
        assert_eq!(limits(15, 148), (624, 1605));
        assert_eq!(limits(0, 20), (0, 1611));
        assert_eq!(limits(1, 29), (61, 1718));
    }

    #[test]
    fn no_runs_say_nothing() {
        assert_eq!(wilson(0, 0), (0.0, 1.0));
        assert_eq!(limits(20, 20), (8389, 10_000));
    }
}
