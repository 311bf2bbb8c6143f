//! Statistics of a few numbers.

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
    }
}
