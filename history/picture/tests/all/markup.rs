//! Names in a history come from users: markup in them comes out as text.

use history::Fate;
use picture::Schedule;
use scraper::{Html, Selector};

use crate::{history, message, picture_with};

const MARKUP: &str = "</title></style></script><script>alert(1)</script><img src=x onerror=alert(2)>";

fn count(page: &Html, selector: &str) -> usize {
    page.select(&Selector::parse(selector).unwrap()).count()
}

#[test]
fn markup_in_names_is_text() {
    let process = format!("worker{MARKUP}");
    let fields = format!(r#""owner_token_prefix":{:?}"#, format!("{process}:1"));
    let detail = format!(
        r#""verb":"step","effect":{{"clock":{{"step_nanos":1000000000}}}},"detail":{MARKUP:?},"fault":0"#
    );
    let events =
        history(&[(0, &process, "lease_requested", &fields), (1, &process, "fault_applied", &detail)]);
    let drawn = picture_with(MARKUP, &events.events, &[message(MARKUP, 0, Fate::Held)]);
    let schedule = Schedule::new(MARKUP, &format!("# {MARKUP}\n[[fault]]\n# {MARKUP}\n"));
    let text = picture::page(std::slice::from_ref(&drawn), Some(&schedule));
    let page = Html::parse_document(&text);
    assert_eq!(count(&page, "script"), 2, "the page's data and its script");
    assert_eq!(count(&page, "img, [onerror]"), 0);
    assert_eq!(count(&page, "style"), 1);
    let shown: String = page.root_element().text().collect();
    assert!(shown.contains(&process), "the name is shown as it is");
    let pre = page.select(&Selector::parse("pre").unwrap()).next().unwrap();
    assert_eq!(pre.text().collect::<String>().matches(MARKUP).count(), 2, "the schedule, too");
    let data = page.select(&Selector::parse("#data").unwrap()).next().unwrap();
    let data: serde_json::Value = serde_json::from_str(&data.text().collect::<String>()).unwrap();
    assert!(data.to_string().contains("</script>"), "the data have the name, as text");

    let svg = picture::svg(&[drawn]);
    let svg = roxmltree::Document::parse(&svg).unwrap();
    let names: Vec<&str> = svg.descendants().map(|node| node.tag_name().name()).collect();
    assert!(!names.contains(&"script") && !names.contains(&"img"));
}
