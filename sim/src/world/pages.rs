//! The contents of a file by page, behind an operating system's cache: with the contents at the last sync.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::mem;

/// The size of a page in bytes. The disk writes a page whole or not at all.
const PAGE: usize = 4096;

type Page = Box<[u8; PAGE]>;

/// The contents of a file.
#[derive(Debug)]
pub(super) struct Pages {
    /// The file as the operating system sees it. A page that was never written is zero and not stored.
    pages: BTreeMap<usize, Page>,
    length: usize,
    /// The contents at the last sync of all pages that were written since.
    undo: BTreeMap<usize, Option<Page>>,
    durable_length: usize,
    /// The smallest length to which the file was cut since the last sync; `usize::MAX` if it was not.
    cut: usize,
}

impl Default for Pages {
    fn default() -> Self {
        Self { pages: BTreeMap::new(), length: 0, undo: BTreeMap::new(), durable_length: 0, cut: usize::MAX }
    }
}

impl Pages {
    /// Returns the length in bytes.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Returns the page for a write, after keeping its contents at the last sync.
    fn page_mut(&mut self, number: usize) -> &mut [u8; PAGE] {
        let page = self.pages.entry(number);
        self.undo.entry(number).or_insert_with(|| match &page {
            Entry::Occupied(page) => Some(page.get().clone()),
            Entry::Vacant(_) => None,
        });
        page.or_insert_with(|| Box::new([0; PAGE]))
    }

    /// Writes `data` at `offset`.
    pub(super) fn write(&mut self, mut offset: usize, mut data: &[u8]) {
        self.length = self.length.max(offset + data.len());
        while !data.is_empty() {
            let within = offset % PAGE;
            let (part, rest) = data.split_at(data.len().min(PAGE - within));
            self.page_mut(offset / PAGE)[within..within + part.len()].copy_from_slice(part);
            offset += part.len();
            data = rest;
        }
    }

    /// Writes `data` at the end.
    pub(super) fn append(&mut self, data: &[u8]) {
        self.write(self.length, data);
    }

    /// Reads from `offset` on. Beyond the end all bytes are zero.
    pub(super) fn read(&self, mut offset: usize, mut out: &mut [u8]) {
        while !out.is_empty() {
            let within = offset % PAGE;
            let (part, rest) = out.split_at_mut(out.len().min(PAGE - within));
            match self.pages.get(&(offset / PAGE)) {
                Some(page) => part.copy_from_slice(&page[within..within + part.len()]),
                None => part.fill(0),
            }
            offset += part.len();
            out = rest;
        }
    }

    /// Shortens the file, or extends it with zeros.
    pub(super) fn set_length(&mut self, length: usize) {
        let old = mem::replace(&mut self.length, length);
        if length >= old {
            return;
        }
        self.cut = self.cut.min(length);
        if !length.is_multiple_of(PAGE) {
            self.page_mut(length / PAGE)[length % PAGE..].fill(0);
        }
        let beyond = self.pages.split_off(&length.div_ceil(PAGE));
        for (number, page) in beyond {
            self.undo.entry(number).or_insert(Some(page));
        }
    }

    /// Makes the contents durable.
    pub(super) fn sync(&mut self) {
        self.undo.clear();
        self.durable_length = self.length;
        self.cut = usize::MAX;
    }

    /// Restores the contents at the last sync.
    pub(super) fn lose_power(&mut self) {
        for (number, page) in mem::take(&mut self.undo) {
            self.restore(number, page);
        }
        self.length = self.durable_length;
        self.cut = usize::MAX;
    }

    /// Restores the contents at the last sync, but for the changes that `keeps` keeps: it is called for the
    /// cut of the file, if it was cut, and for each page that was written.
    ///
    /// A file system writes the cut before it uses the room again: if the cut is lost, so is all that was
    /// written beyond it. A page that is kept makes the file as long as it was up to the end of that page;
    /// lost pages before it are zero.
    pub(super) fn lose_some(&mut self, mut keeps: impl FnMut() -> bool) {
        let is_cut = self.cut < self.durable_length;
        if is_cut && !keeps() {
            return self.lose_cut(keeps);
        }
        let base = self.cut.min(self.durable_length);
        let mut end = base;
        for (number, page) in mem::take(&mut self.undo) {
            if keeps() {
                end = end.max(self.length.min((number + 1) * PAGE));
            } else {
                self.restore(number, page.and_then(|page| up_to(base, number, page)));
            }
        }
        self.length = end;
        self.sync();
    }

    /// Restores the contents from the cut on; keeps some of the pages before it.
    fn lose_cut(&mut self, mut keeps: impl FnMut() -> bool) {
        let first = self.cut / PAGE;
        for (number, page) in mem::take(&mut self.undo) {
            if number >= first || !keeps() {
                self.restore(number, page);
            }
        }
        self.length = self.durable_length;
        self.sync();
    }

    fn restore(&mut self, number: usize, page: Option<Page>) {
        match page {
            Some(page) => self.pages.insert(number, page),
            None => self.pages.remove(&number),
        };
    }
}

/// Returns a page of a file that was cut at `base`; `None` if nothing is left of it.
fn up_to(base: usize, number: usize, mut page: Page) -> Option<Page> {
    let left = base.saturating_sub(number * PAGE).min(PAGE);
    page[left..].fill(0);
    (left > 0).then_some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file of three pages: of `a` when it was synced, of `b` since.
    fn overwritten() -> Pages {
        let mut pages = Pages::default();
        pages.write(0, &[b'a'; 3 * PAGE]);
        pages.sync();
        pages.write(0, &[b'b'; 3 * PAGE]);
        pages
    }

    /// Returns the first byte of each page.
    fn firsts(pages: &Pages) -> String {
        let first = |number| {
            let mut byte = [0];
            pages.read(number * PAGE, &mut byte);
            if byte[0] == 0 { '-' } else { char::from(byte[0]) }
        };
        (0..pages.length().div_ceil(PAGE)).map(first).collect()
    }

    /// Loses power, and keeps the changes whose letter is `k`.
    fn lose(mut pages: Pages, keeps: &str) -> Pages {
        let mut drawn = keeps.chars();
        pages.lose_some(|| drawn.next() == Some('k'));
        assert_eq!(drawn.next(), None, "{keeps}");
        pages
    }

    #[test]
    fn each_page_is_kept_or_lost_by_itself() {
        assert_eq!(firsts(&lose(overwritten(), "k-k")), "bab");
        assert_eq!(firsts(&lose(overwritten(), "---")), "aaa");
    }

    #[test]
    fn a_page_that_was_kept_is_durable_afterwards() {
        let mut pages = overwritten();
        pages.append(b"more");
        let mut pages = lose(pages, "k--k");
        pages.lose_power();
        assert_eq!((pages.length(), firsts(&pages)), (3 * PAGE + 4, "baam".to_owned()));
    }

    #[test]
    fn a_file_that_grew_ends_after_its_last_kept_page() {
        let mut pages = Pages::default();
        pages.append(&[b'a'; 100]);
        pages.sync();
        pages.append(&[b'b'; 3 * PAGE]);
        let pages = lose(pages, "-kk-");
        assert_eq!((pages.length(), firsts(&pages)), (3 * PAGE, "abb".to_owned()));
        let mut tail = [9; 2];
        pages.read(99, &mut tail);
        assert_eq!(tail, [b'a', 0]);
    }

    #[test]
    fn a_cut_is_kept_with_or_without_later_writes() {
        let rewritten = || {
            let mut pages = overwritten();
            pages.sync();
            pages.set_length(0);
            pages.write(0, &[b'c'; 2 * PAGE]);
            pages
        };
        assert_eq!(firsts(&lose(rewritten(), "k---")), "");
        assert_eq!(firsts(&lose(rewritten(), "k-k-")), "-c");
        assert_eq!(firsts(&lose(rewritten(), "kkk-")), "cc");
    }

    #[test]
    fn a_lost_cut_loses_later_writes_beyond_it() {
        let mut pages = overwritten();
        pages.sync();
        pages.set_length(PAGE);
        pages.write(0, &[b'c'; 2 * PAGE]);
        let mut draws = 0;
        pages.lose_some(|| {
            draws += 1;
            draws > 1
        });
        assert_eq!(firsts(&pages), "cbb");
    }
}
