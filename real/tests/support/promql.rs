//! Reads the metrics and labels of a query in PromQL, as far as the dashboard and the alerts use the
//! language.

/// A metric in a query, with its matchers: labels and the values that they are compared with.
pub(crate) struct Selector {
    pub(crate) metric: String,
    pub(crate) matchers: Vec<(String, String)>,
}

/// Returns the metrics of `query`: all names that are no function, keyword, label or value.
pub(crate) fn selectors(query: &str) -> Vec<Selector> {
    let mut found = Vec::new();
    let mut rest = without_groups(query);
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        let name: String = rest[start..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        rest = rest[start + name.len()..].to_owned();
        if rest.starts_with('{') {
            let (inside, after) = rest[1..].split_once('}').unwrap();
            found.push(Selector { metric: name, matchers: matchers(inside) });
            rest = after.to_owned();
        } else if rest.starts_with('[') || name.contains('_') && !rest.starts_with('(') {
            found.push(Selector { metric: name, matchers: Vec::new() });
        }
        if let Some(range) = rest.strip_prefix('[') {
            rest = range.split_once(']').unwrap().1.to_owned();
        }
    }
    found
}

/// Returns the labels of all `by (…)` that metrics themselves have: `le` is that of buckets alone.
pub(crate) fn grouped_by(query: &str) -> Vec<String> {
    let groups = query.split("by (").skip(1).filter_map(|rest| rest.split_once(')'));
    let labels = groups.flat_map(|(labels, _)| labels.split(','));
    labels.map(|label| label.trim().to_owned()).collect()
}

fn without_groups(query: &str) -> String {
    let mut parts = query.split("by (");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once(')').unwrap().1)
}

fn matchers(inside: &str) -> Vec<(String, String)> {
    let matcher = |text: &str| {
        let end = text.find(['=', '!']).unwrap();
        let value = text[end..].trim_matches(|c| "=!~\"".contains(c));
        (text[..end].trim().to_owned(), value.to_owned())
    };
    inside.split(',').filter(|text| !text.trim().is_empty()).map(matcher).collect()
}

#[test]
fn metrics_and_labels_of_a_query_are_found() {
    let query =
        r#"sum by (le, system) (rate(a_bucket{outcome=~"x|y",system!="z"}[5m])) / sum(b_total[1m]) > c_d"#;
    let found = selectors(query);
    let names: Vec<_> = found.iter().map(|selector| selector.metric.as_str()).collect();
    assert_eq!(names, ["a_bucket", "b_total", "c_d"]);
    let expected = [("outcome", "x|y"), ("system", "z")].map(|(label, value)| (label.into(), value.into()));
    assert_eq!(found[0].matchers, expected);
    assert_eq!(grouped_by(query), ["le", "system"]);
}
