//! What values are like: extremes, mean, root mean square and the first of them.

use graph::{Cell, Document};

/// Names of the columns of [`statistics`].
pub(super) const STATISTICS: [&str; 6] = ["elements", "minimum", "maximum", "mean", "rms", "first values"];

/// Extremes, mean and root mean square of values, and the first of them. A NaN anywhere shows in mean and rms.
pub(super) fn statistics(values: &[f64]) -> Vec<Cell> {
    let first: Vec<String> = values.iter().take(8).map(|value| format!("{value:.6}")).collect();
    let number = |value: f64| if value.is_finite() { Cell::Measure(value) } else { Cell::Text(value.to_string()) };
    if values.is_empty() {
        return vec![0_u64.into(), Cell::None, Cell::None, Cell::None, Cell::None, Cell::None];
    }
    let count = values.len() as f64;
    let squares: f64 = values.iter().map(|value| value * value).sum();
    vec![
        values.len().into(),
        number(values.iter().copied().fold(f64::INFINITY, f64::min)),
        number(values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        number(values.iter().sum::<f64>() / count),
        number(libm::sqrt(squares / count)),
        first.join(" ").into(),
    ]
}

/// Adds the statistics of values as facts.
pub(super) fn with_statistics(mut document: Document, values: &[f64]) -> Document {
    document.facts.extend(STATISTICS.iter().map(|name| (*name).to_owned()).zip(statistics(values)));
    document
}

/// Extents as words, `1x729x72`.
pub(super) fn extents(shape: &[u32]) -> String {
    let extents: Vec<String> = shape.iter().map(ToString::to_string).collect();
    extents.join("x")
}

#[cfg(test)]
mod tests {
    use graph::Cell;

    use super::statistics;

    #[test]
    fn known_values_have_known_statistics() {
        let found = statistics(&[3.0, -4.0, 1.0, 0.0]);
        let expected = [Cell::Count(4), (-4.0).into(), 3.0.into(), 0.0.into(), 6.5_f64.sqrt().into()];
        assert_eq!(found[..5], expected);
        assert_eq!(found[5], "3.000000 -4.000000 1.000000 0.000000".into());
    }
}
