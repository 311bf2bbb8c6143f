//! Pages of a site around the pages of runs: they have the same style, and links between them.

use maud::{Markup, PreEscaped, html};

use crate::draw::{HTML, STYLE};

const SITE_STYLE: &str = include_str!("site.css");
pub(crate) const PAGE_STYLE: &str = include_str!("page.css");

/// A link to another page of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The address, relative to the page that has the link.
    pub to: String,
    /// Its words.
    pub words: String,
}

impl Link {
    /// Returns a link with these words.
    pub fn new(to: impl Into<String>, words: impl Into<String>) -> Self {
        Self { to: to.into(), words: words.into() }
    }
}

/// Returns a page of a site, with links to other pages above its content.
pub fn site(title: &str, links: &[Link], content: &Markup) -> String {
    let markup = html! {
        (HTML)
        html lang="en" {
            (head(title))
            body.site {
                (navigation(links))
                main { h1 { (title) } (content) }
            }
        }
    };
    markup.into_string() + "\n"
}

/// Returns the head of a page: it needs no other file.
pub(crate) fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) }
            style { (PreEscaped(STYLE)) (PreEscaped(PAGE_STYLE)) (PreEscaped(SITE_STYLE)) }
        }
    }
}

/// Returns the links above a page, if it has any.
pub(crate) fn navigation(links: &[Link]) -> Markup {
    html! {
        @if !links.is_empty() {
            nav.site-links aria-label="Site" {
                @for link in links { a href=(link.to) { (link.words) } }
            }
        }
    }
}
