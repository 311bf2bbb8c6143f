//! The debate between Kleppmann and antirez as a guided tour: docs/redlock.md, with the runs beside it.

use std::collections::BTreeMap;
use std::iter::Peekable;

use maud::{PreEscaped, html};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd};

use super::exhibit::Exhibit;
use super::site_links;

/// The page on the debate. A test replays every run that it names.
const DEBATE: &str = include_str!("../../../../docs/redlock.md");

/// Returns the schedules of the tour, in its order.
pub(super) fn order() -> Vec<String> {
    let mut order: Vec<String> = Vec::new();
    for event in Parser::new_ext(DEBATE, Options::ENABLE_TABLES) {
        if let Event::Start(Tag::Link { dest_url, .. }) = event
            && let Some(name) = schedule(&dest_url)
            && !order.iter().any(|known| known == name)
        {
            order.push(name.to_owned());
        }
    }
    order
}

/// Returns the tour, with small pictures of the runs below each paragraph that names them.
pub(super) fn page(exhibits: &[Exhibit]) -> String {
    let corpus = exhibits.iter().filter(|exhibit| exhibit.folder == "seeds");
    let by_name: BTreeMap<&str, &Exhibit> = corpus.map(|exhibit| (exhibit.name.as_str(), exhibit)).collect();
    let mut parser = Parser::new_ext(DEBATE, Options::ENABLE_TABLES).peekable();
    let title = take_title(&mut parser);
    let (mut events, mut named, mut in_table) = (Vec::new(), Vec::new(), false);
    let mut open_links = Vec::new();
    while let Some(event) = parser.next() {
        match event {
            Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                let words = take_words(&mut parser);
                let id = Some(CowStr::from(slug(&words.iter().map(text).collect::<String>())));
                events.push(Event::Start(Tag::Heading { level, id, classes, attrs }));
                events.extend(words);
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let name = schedule(&dest_url).map(str::to_owned);
                let address = name.as_ref().map(|name| CowStr::from(format!("seeds/{name}.html")));
                named.extend(name.filter(|_| !in_table));
                // A link to a file of the repository, which the site does not have, stays as words.
                let is_own = dest_url.starts_with("../") && address.is_none();
                open_links.push(!is_own);
                if !is_own {
                    let dest_url = address.unwrap_or(dest_url);
                    events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                }
            }
            Event::End(TagEnd::Link) => {
                if open_links.pop().unwrap_or_default() {
                    events.push(event);
                }
            }
            Event::Start(Tag::Table(_)) => {
                in_table = true;
                events.push(Event::Html(
                    "<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
                    aria-label=\"The runs of the debate\">"
                        .into(),
                ));
                events.push(event);
            }
            Event::End(TagEnd::Table) => {
                in_table = false;
                events.push(event);
                events.push(Event::Html("</div>".into()));
            }
            Event::End(TagEnd::Paragraph) => {
                events.push(event);
                events.push(Event::Html(small_pictures(&std::mem::take(&mut named), &by_name).into()));
            }
            event => events.push(event),
        }
    }
    let mut body = String::new();
    pulldown_cmark::html::push_html(&mut body, events.into_iter());
    picture::site(&title, &site_links(""), &html! { (PreEscaped(body)) })
}

/// Takes the page's title from the beginning of its text.
fn take_title<'a>(parser: &mut Peekable<impl Iterator<Item = Event<'a>>>) -> String {
    match parser.next_if(|event| matches!(event, Event::Start(Tag::Heading { .. }))) {
        Some(_) => take_words(parser).iter().map(text).collect(),
        None => String::new(),
    }
}

/// Takes the rest of a heading, with its end.
fn take_words<'a>(parser: &mut Peekable<impl Iterator<Item = Event<'a>>>) -> Vec<Event<'a>> {
    let mut words = Vec::new();
    for event in parser.by_ref() {
        let is_end = matches!(event, Event::End(TagEnd::Heading(_)));
        words.push(event);
        if is_end {
            break;
        }
    }
    words
}

/// Returns the text of an event.
fn text<'a>(event: &'a Event<'_>) -> &'a str {
    match event {
        Event::Text(text) | Event::Code(text) => text,
        _ => "",
    }
}

/// Returns the name of a heading in links, as GitHub makes it.
fn slug(words: &str) -> String {
    let words = words.to_lowercase();
    let kept = words.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the schedule that a link leads to.
fn schedule(address: &str) -> Option<&str> {
    address.strip_prefix("../seeds/")?.strip_suffix(".toml")
}

fn small_pictures(names: &[String], by_name: &BTreeMap<&str, &Exhibit>) -> String {
    let mut shown: Vec<&&Exhibit> = Vec::new();
    for exhibit in names.iter().filter_map(|name| by_name.get(name.as_str())) {
        if !shown.iter().any(|known| known.name == exhibit.name) {
            shown.push(exhibit);
        }
    }
    let markup = html! {
        @if !shown.is_empty() {
            ul.tour-runs {
                @for exhibit in shown {
                    li { a href=(exhibit.address()) { (exhibit.name) } (exhibit.small_pictures()) }
                }
            }
        }
    };
    markup.into_string()
}
