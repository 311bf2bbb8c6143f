//! The gallery: every schedule has its page, and every link leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use lab::gallery::{Plan, gallery};
use scraper::{Html, Selector};

/// The ids and the links of each page, by its address.
type Pages = BTreeMap<PathBuf, (BTreeSet<String>, Vec<String>)>;

fn attributes(page: &Html, name: &str) -> Vec<String> {
    let selector = Selector::parse(&format!("[{name}]")).unwrap();
    page.select(&selector).filter_map(|element| element.attr(name)).map(str::to_owned).collect()
}

fn read(folder: &Path, root: &Path, pages: &mut Pages) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, root, pages);
        } else {
            let page = Html::parse_document(&std::fs::read_to_string(&path).unwrap());
            let ids = attributes(&page, "id").into_iter().collect();
            pages.insert(path.strip_prefix(root).unwrap().to_owned(), (ids, attributes(&page, "href")));
        }
    }
}

/// Returns the page and the id that a link on `page` leads to.
fn target(page: &Path, link: &str) -> (PathBuf, Option<String>) {
    let (address, id) = link.split_once('#').map_or((link, None), |(address, id)| (address, Some(id)));
    let id = id.map(str::to_owned);
    if address.is_empty() {
        return (page.to_owned(), id);
    }
    let mut path = PathBuf::new();
    for part in page.parent().unwrap().join(address).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{link} on {} leaves the site", page.display()),
            part => path.push(part),
        }
    }
    (path, id)
}

/// Returns the names of the schedules in a folder.
fn names(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let schedules = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    schedules.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn every_schedule_has_its_page_and_every_link_leads_somewhere() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../seeds");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gallery");
    let _ = std::fs::remove_dir_all(&out);
    let (length, steps) = (AtomicU64::new(0), AtomicU64::new(0));
    let plan = Plan { seeds: &seeds, out: &out, schedules: 2, threads: 2 };
    let written = gallery(
        &plan,
        |steps| length.store(steps, Ordering::Relaxed),
        || {
            steps.fetch_add(1, Ordering::Relaxed);
        },
    );
    let mut pages = Pages::new();
    read(&out, &out, &mut pages);
    assert_eq!(written.unwrap(), pages.len() as u64);
    assert_eq!(steps.into_inner(), length.into_inner(), "the progress ends at its length");

    let index = &pages[Path::new("index.html")].1;
    for (folder, schedules) in [("seeds", names(&seeds)), ("museum", names(&seeds.join("museum")))] {
        assert!(schedules.len() > 20, "{folder}");
        for name in schedules {
            let address = format!("{folder}/{name}.html");
            assert!(pages.contains_key(Path::new(&address)), "{address} is missing");
            assert!(index.contains(&address), "the index lacks {address}");
        }
    }
    for (page, (_, links)) in &pages {
        assert!(!links.is_empty(), "{} leads nowhere", page.display());
        for link in links.iter().filter(|link| !link.starts_with("http")) {
            let (path, id) = target(page, link);
            let found = pages.get(&path);
            let is_there = found.is_some_and(|(ids, _)| id.is_none_or(|id| ids.contains(&id)));
            assert!(is_there, "{link} on {} leads nowhere", page.display());
        }
    }

    // The tour leads from run to run.
    let leads = |from: &str, to: &str| pages[Path::new(from)].1.contains(&to.to_owned());
    assert!(leads("tour.html", "seeds/gc-pause-redlock.html"));
    assert!(leads("seeds/gc-pause-redlock.html", "gc-pause.html"), "the first run leads to the second");
    assert!(leads("seeds/gc-pause.html", "gc-pause-redlock.html"), "and the second one back");
}
