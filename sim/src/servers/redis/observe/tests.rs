//! Tests of the observer's words for owners.

use super::*;

#[test]
fn owners_that_can_not_be_printed_are_told_apart() {
    assert_eq!(prefix_of(b"a:7f3c9e12aaaa"), "a:7f3c9e12");
    assert_eq!(prefix_of("zoë:7f3c9e12aaaa".as_bytes()), "zoë:7f3c9e12");
    assert_eq!(prefix_of(b"\xff\x00\x10\xab\x01"), "ff0010ab");
    assert_ne!(prefix_of(b"\xff\xfe\xfd\xfc\xfb"), prefix_of(b"\xff\xfe\xfd\xfb\xfb"));
    // A line of a log holds no control characters.
    assert_eq!(prefix_of(b"a\nb"), "610a62");
}
