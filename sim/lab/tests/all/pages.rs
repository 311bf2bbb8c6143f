//! The pages for readers: links lead somewhere, the index of docs/ is complete, and two pages stay short.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The most words of the README, code included.
const README_WORDS: usize = 900;

/// The most lines of a paragraph of ARCHITECTURE.md.
const PARAGRAPH_LINES: usize = 8;

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let mut problems = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for (line, target) in links(&text) {
            if let Some(problem) = dead(&page, &target) {
                problems.push(format!("{}:{line}: {target}: {problem}", page.display()));
            }
        }
    }
    assert!(problems.is_empty(), "these links lead nowhere:\n{}", problems.join("\n"));
}

#[test]
fn the_index_of_docs_names_every_page() {
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    let named: Vec<_> = links(&index).into_iter().map(|(_, target)| target).collect();
    let pages =
        pages_of_docs().into_iter().map(|page| page.file_name().unwrap().to_str().unwrap().to_owned());
    let missing: Vec<_> = pages.filter(|page| page != "README.md" && !named.contains(page)).collect();
    assert!(missing.is_empty(), "add a line to docs/README.md for: {}", missing.join(", "));
}

#[test]
fn the_readme_stays_short() {
    let words = fs::read_to_string(root().join("README.md")).unwrap().split_whitespace().count();
    assert!(words <= README_WORDS, "README.md has {words} words: move some to docs/ ({README_WORDS} fit)");
}

#[test]
fn no_paragraph_of_the_architecture_is_long() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let long: Vec<_> = paragraphs(&text)
        .into_iter()
        .filter(|(_, lines)| *lines > PARAGRAPH_LINES)
        .map(|(first, lines)| format!("ARCHITECTURE.md:{first}: {lines} lines"))
        .collect();
    assert!(long.is_empty(), "split these paragraphs after {PARAGRAPH_LINES} lines:\n{}", long.join("\n"));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Returns the pages whose links are checked, relative to the root.
fn pages() -> Vec<PathBuf> {
    let front = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(PathBuf::from);
    front.into_iter().chain(pages_of_docs()).collect()
}

fn pages_of_docs() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut pages: Vec<_> = entries.map(|name| Path::new("docs").join(name)).collect();
    pages.retain(|page| page.extension().is_some_and(|ending| ending == "md"));
    pages.sort();
    pages
}

/// Returns the targets of the links and images in a page, each with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            let line = text[..range.start].matches('\n').count() + 1;
            links.push((line, dest_url.into_string()));
        }
    }
    links
}

/// Returns the reason why a link of `page` is dead, if it is. Links out of this repository are not checked.
fn dead(page: &Path, target: &str) -> Option<String> {
    if target.contains("://") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let page = root().join(page);
    let file = if path.is_empty() { page } else { page.parent().unwrap().join(path) };
    if !file.exists() {
        return Some(format!("{} does not exist", file.display()));
    }
    if anchor.is_empty() {
        return None;
    }
    if file.extension().is_none_or(|ending| ending != "md") {
        return Some("only headings of Markdown pages have anchors".to_owned());
    }
    let anchors = anchors(&fs::read_to_string(file).unwrap());
    (!anchors.iter().any(|known| known == anchor))
        .then(|| format!("no such heading; there are {}", anchors.join(", ")))
}

/// Returns the anchors of a page's headings, as GitHub makes them: a repeated heading gets a number.
fn anchors(text: &str) -> Vec<String> {
    let (mut anchors, mut heading, mut counts) = (Vec::new(), None, BTreeMap::new());
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(words) | Event::Code(words), Some(heading)) => heading.push_str(&words),
            (Event::End(TagEnd::Heading(_)), Some(words)) => {
                let slug = slug(words);
                let count = counts.entry(slug.clone()).or_insert(0);
                anchors.push(if *count == 0 { slug } else { format!("{slug}-{count}") });
                *count += 1;
                heading = None;
            }
            _ => {}
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the first line and the length of each paragraph. An item of a list is one. Headings, tables and
/// blocks of code are none.
fn paragraphs(text: &str) -> Vec<(usize, usize)> {
    let mut paragraphs: Vec<(usize, usize)> = Vec::new();
    let (mut in_code, mut is_open) = (false, false);
    for (line, number) in text.lines().map(str::trim_start).zip(1..) {
        let is_fence = line.starts_with("```");
        if in_code || is_fence || line.is_empty() || line.starts_with(['#', '|']) {
            in_code ^= is_fence;
            is_open = false;
        } else if is_open && !line.starts_with("- ") {
            paragraphs.last_mut().unwrap().1 += 1;
        } else {
            paragraphs.push((number, 1));
            is_open = true;
        }
    }
    paragraphs
}
