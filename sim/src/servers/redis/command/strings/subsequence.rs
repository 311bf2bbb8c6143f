//! LCS, the longest common subsequence of two strings. Source: `t_string.c` of Redis 7.0.

use super::super::SYNTAX_ERROR;
use super::super::ranges::parse_integer;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;

/// The most pairs of bytes that are compared, whose table takes 256 MiB. Redis tries to allocate any table.
const PAIRS_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug, Default)]
struct Options {
    length: bool,
    places: bool,
    with_length: bool,
    least: i64,
}

pub(crate) fn lcs(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let not_strings = "ERR The specified keys must contain string values";
    let values = [args.at(1), args.at(2)].map(|key| state.text(key).map(Option::unwrap_or_default));
    let [Ok(one), Ok(other)] = values else { return Err(Reply::error(not_strings)) };
    let options = parse(args.skip(3))?;
    if options.length && options.places {
        return Err(Reply::error("ERR If you want both the length and indexes, please just use IDX."));
    }
    if one.len().saturating_add(1).saturating_mul(other.len().saturating_add(1)) > PAIRS_MAX {
        return Err(Reply::error("ERR Insufficient memory, failed allocating transient memory for LCS"));
    }
    let table = Table::new(&one, &other);
    if options.length {
        return Ok(Reply::Integer(i64::from(table.at(one.len(), other.len()))));
    }
    let (text, matches) = table.trace(&one, &other);
    if !options.places {
        return Ok(Reply::bulk(text));
    }
    let range = |(start, end): (usize, usize)| Reply::Array(vec![Reply::count(start), Reply::count(end)]);
    let kept = matches.iter().filter(|part| part.length as i64 >= options.least);
    let shown = kept.map(|part| {
        let mut fields = vec![range(part.range_in(part.one)), range(part.range_in(part.other))];
        fields.extend(options.with_length.then(|| Reply::count(part.length)));
        Reply::Array(fields)
    });
    let length = Reply::Integer(i64::from(table.at(one.len(), other.len())));
    Ok(Reply::Map(vec![("matches", Reply::Array(shown.collect())), ("len", length)]))
}

fn parse(args: Args<'_>) -> Result<Options, Reply> {
    let mut options = Options::default();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.to_ascii_lowercase().as_slice() {
            b"idx" => options.places = true,
            b"len" => options.length = true,
            b"withmatchlen" => options.with_length = true,
            b"minmatchlen" => {
                let least = words.next().ok_or(Reply::error(SYNTAX_ERROR))?;
                options.least = parse_integer(least)?.max(0);
            }
            _ => return Err(Reply::error(SYNTAX_ERROR)),
        }
    }
    Ok(options)
}

/// A common part: its first places in both strings.
struct Part {
    one: usize,
    other: usize,
    length: usize,
}

impl Part {
    fn range_in(&self, start: usize) -> (usize, usize) {
        (start, start + self.length - 1)
    }
}

/// The lengths of the longest common subsequences of all beginnings of both strings.
struct Table {
    width: usize,
    lengths: Vec<u32>,
}

impl Table {
    fn new(one: &[u8], other: &[u8]) -> Self {
        let width = other.len() + 1;
        let mut table = Self { width, lengths: vec![0; (one.len() + 1) * width] };
        for (i, byte) in one.iter().enumerate() {
            for (j, against) in other.iter().enumerate() {
                let longest = table.at(i, j + 1).max(table.at(i + 1, j));
                let length = if byte == against { table.at(i, j) + 1 } else { longest };
                table.lengths[(i + 1) * width + j + 1] = length;
            }
        }
        table
    }

    fn at(&self, i: usize, j: usize) -> u32 {
        self.lengths[i * self.width + j]
    }

    /// Returns the longest common subsequence, and its parts from the last to the first.
    fn trace(&self, one: &[u8], other: &[u8]) -> (Vec<u8>, Vec<Part>) {
        let (mut text, mut parts) = (Vec::new(), Vec::<Part>::new());
        let (mut i, mut j) = (one.len(), other.len());
        while i > 0 && j > 0 {
            if one[i - 1] == other[j - 1] {
                (i, j) = (i - 1, j - 1);
                text.push(one[i]);
                match parts.last_mut() {
                    Some(part) if part.one == i + 1 && part.other == j + 1 => {
                        *part = Part { one: i, other: j, length: part.length + 1 };
                    }
                    _ => parts.push(Part { one: i, other: j, length: 1 }),
                }
            } else if self.at(i - 1, j) > self.at(i, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        text.reverse();
        (text, parts)
    }
}
