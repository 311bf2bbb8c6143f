//! Patterns of keys: `*`, `?`, `[a-z]`, `[^a]` and `\` before a plain character. Source: `stringmatchlen` of
//! Redis.

/// Returns true if `text` matches `pattern` as a whole. As in Redis, an empty text matches only the empty
/// pattern, not `*`. KEYS and SCAN treat the pattern `*` as no pattern, so they also return empty names.
///
/// Every part of a pattern but `*` stands for one byte, so only the last `*` needs a second try: the time is
/// at most the product of both lengths.
pub(crate) fn matches(mut pattern: &[u8], mut text: &[u8]) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    // The pattern behind the last `*`, and the text on which it was tried.
    let mut last_star = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            last_star = Some((rest, text));
            pattern = rest;
        } else if let Some(rest) = match_byte(pattern, text) {
            (pattern, text) = rest;
        } else if pattern.is_empty() && text.is_empty() {
            return true;
        } else {
            let Some((rest, [_, later @ ..])) = last_star else { return false };
            last_star = Some((rest, later));
            (pattern, text) = (rest, later);
        }
    }
}

/// Returns the rest of both if the first part of `pattern`, which is no `*`, matches the first byte of
/// `text`.
fn match_byte<'p, 't>(pattern: &'p [u8], text: &'t [u8]) -> Option<(&'p [u8], &'t [u8])> {
    let (first, text) = text.split_first()?;
    let (is_match, pattern) = match pattern {
        [] => return None,
        [b'?', rest @ ..] => (true, rest),
        [b'[', class @ ..] => in_class(class, *first),
        [b'\\', plain, rest @ ..] | [plain, rest @ ..] => (plain == first, rest),
    };
    is_match.then_some((pattern, text))
}

/// Returns whether `byte` is in the class that begins behind `[`, and the rest of the pattern after the
/// class.
fn in_class(class: &[u8], byte: u8) -> (bool, &[u8]) {
    let (negated, mut rest) = match class {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut found = false;
    loop {
        match rest {
            [] => return (found != negated, rest),
            [b']', tail @ ..] => return (found != negated, tail),
            [b'\\', plain, tail @ ..] => {
                found |= *plain == byte;
                rest = tail;
            }
            [low, b'-', high, tail @ ..] => {
                found |= (*low.min(high)..=*low.max(high)).contains(&byte);
                rest = tail;
            }
            [plain, tail @ ..] => {
                found |= *plain == byte;
                rest = tail;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, matched) in [
            ("*", "", false),
            ("", "", true),
            ("*", "a", true),
            ("a*", "a", true),
            ("a*c", "abbc", true),
            ("a*c", "abb", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("lock:v1:{*}:owner", "lock:v1:{orders:1}:owner", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), matched, "{pattern} {text}");
        }
    }

    #[test]
    fn long_patterns_take_neither_long_nor_much_stack() {
        let text = "a".repeat(200_000);
        assert!(matches(text.as_bytes(), text.as_bytes()));
        let stars = "*a".repeat(50);
        assert!(matches(stars.as_bytes(), text.as_bytes()));
        assert!(!matches(format!("{stars}b").as_bytes(), &text.as_bytes()[..1000]));
    }
}
