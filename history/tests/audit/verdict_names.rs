use std::collections::BTreeSet;

use history::VerdictKind;

#[test]
fn a_kind_has_one_name_for_display_parsing_and_json() {
    for &kind in VerdictKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
        assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
    }
    let error = "stale".parse::<VerdictKind>().unwrap_err().to_string();
    assert!(error.starts_with("unknown verdict `stale`: known are overlap, stale_write,"), "{error}");
}

#[test]
fn kinds_are_ordered_as_listed_and_each_explains_itself() {
    assert!(VerdictKind::ALL.is_sorted());
    let sentences: BTreeSet<&str> = VerdictKind::ALL.iter().map(|kind| kind.explain()).collect();
    assert_eq!(sentences.len(), VerdictKind::ALL.len());
    assert!(sentences.iter().all(|sentence| sentence.ends_with('.') && !sentence.contains("  ")));
}
