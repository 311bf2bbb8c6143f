//! Statistics of a few numbers, and how sure they are.

/// Returns the median: the middle value, or the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The quantile of the normal distribution for intervals with a confidence of 95 %.
const Z: f64 = 1.959_964;

/// Returns the interval that has the share of all possible runs, of which `hits` of `runs` were hits, with a
/// confidence of 95 %.
///
/// Source: Wilson, "Probable Inference, the Law of Succession, and Statistical Inference" (1927).
pub(crate) fn share_interval(hits: u32, runs: u32) -> (f64, f64) {
    if runs == 0 {
        return (0.0, 1.0);
    }
    let (runs, share) = (f64::from(runs), f64::from(hits) / f64::from(runs));
    let middle = share + Z * Z / (2.0 * runs);
    let half = Z * (share * (1.0 - share) / runs + Z * Z / (4.0 * runs * runs)).sqrt();
    let all = 1.0 + Z * Z / runs;
    (((middle - half) / all).max(0.0), ((middle + half) / all).min(1.0))
}

/// Returns two of the values between which the median of all possible ones is, with a confidence of 95 % at
/// least, whatever their distribution; `None` if they are too few to say so.
pub(crate) fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    quantile_interval(values, 0.5)
}

/// Returns two of the values between which this quantile of all possible ones is, as [`median_interval`]
/// does.
///
/// Source: the interval by order statistics, Conover, "Practical Nonparametric Statistics", section 3.2.
pub(crate) fn quantile_interval(values: &[f64], share: f64) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let first = surely_below(count, share)?.checked_sub(1)?;
    let last = count.checked_sub(surely_below(count, 1.0 - share)?)?;
    Some((*sorted.get(first)?, *sorted.get(last)?))
}

/// Returns the largest number of values that are below the quantile of this share with a chance of 97.5 % at
/// least, of `count` values; `None` if the share is not between 0 and 1.
fn surely_below(count: usize, share: f64) -> Option<usize> {
    if share <= 0.0 || share >= 1.0 {
        return None;
    }
    // `fewer`: the chance that fewer than `low` of the values are below the quantile. By logarithms, since
    // a power of the share to the count is beyond a number.
    let (mut chance_ln, mut fewer, mut low) = (count as f64 * (1.0 - share).ln(), 0.0, 0);
    for rank in 0..count {
        fewer += f64::exp(chance_ln);
        if fewer > 0.025 {
            break;
        }
        low = rank + 1;
        chance_ln += ((count - rank) as f64 / (rank + 1) as f64).ln() + (share / (1.0 - share)).ln();
    }
    Some(low)
}

/// Returns the value below which this share of the values is.
pub(crate) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some(sorted[((share * last as f64).round() as usize).min(last)])
}

/// Returns the largest value.
pub(crate) fn most(values: &[f64]) -> Option<f64> {
    values.iter().copied().max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_maximum_of_a_few_numbers() {
        assert_eq!((median(&[]), most(&[])), (None, None));
        assert_eq!((median(&[3.0, 1.0, 2.0]), most(&[3.0, 1.0, 2.0])), (Some(2.0), Some(3.0)));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        let hundred: Vec<_> = (0..=100).rev().map(f64::from).collect();
        let at = |share| quantile(&hundred, share);
        assert_eq!(
            (at(0.0), at(0.99), at(1.0), quantile(&[], 0.5)),
            (Some(0.0), Some(99.0), Some(100.0), None)
        );
    }

    #[test]
    fn a_share_has_the_interval_of_wilson() {
        let (low, high) = share_interval(0, 30);
        assert!(low.abs() < 1e-9 && (high - 0.1135).abs() < 1e-3, "{low} {high}");
        let (low, high) = share_interval(15, 30);
        assert!((low - 0.3315).abs() < 1e-3 && (high - 0.6685).abs() < 1e-3, "{low} {high}");
        assert_eq!(share_interval(0, 0), (0.0, 1.0));
    }

    #[test]
    fn a_median_is_between_two_of_the_values() {
        let values: Vec<_> = (1..=30).map(f64::from).collect();
        // The table in Conover: for 30 values the 10th and the 21st.
        assert_eq!(median_interval(&values), Some((10.0, 21.0)));
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), Some((1.0, 6.0)));
        let many: Vec<_> = (1..=2000).map(f64::from).collect();
        let (low, high) = median_interval(&many).unwrap();
        assert!((950.0..960.0).contains(&low) && (1041.0..1051.0).contains(&high), "{low} {high}");
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]), None, "5 values say it with 94 %");
    }

    #[test]
    fn a_p99_is_between_two_of_many_values() {
        let values: Vec<_> = (1..=1100).map(f64::from).collect();
        // Binomial, of 1,100 draws with a chance of 1 %: P(X < 5) = 0.015, P(X > 18) = 0.017.
        assert_eq!(quantile_interval(&values, 0.99), Some((1082.0, 1096.0)));
        let few: Vec<_> = (1..=300).map(f64::from).collect();
        assert_eq!(quantile_interval(&few, 0.99), None, "no value is surely above the p99");
        assert_eq!(quantile_interval(&values, 1.0), None);
    }
}
