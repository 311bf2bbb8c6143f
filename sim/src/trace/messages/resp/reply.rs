//! The words of a reply, as `redis-cli` would print it on one line: `OK`, `(nil)`, `7`, `[1, 7, 1999]`.

use super::super::words::{joined, without_owners};
use super::command::key;
use super::value::Value;

/// The first elements of messages that a subscriber gets without a request, as a list or a push.
const PUBLISHED: [&[u8]; 3] = [b"message", b"pmessage", b"smessage"];

/// The first elements of answers to a subscriber's commands, which RESP3 also sends as pushes.
const CONFIRMED: [&[u8]; 6] =
    [b"subscribe", b"unsubscribe", b"psubscribe", b"punsubscribe", b"ssubscribe", b"sunsubscribe"];

/// Formats a reply or a push.
pub(super) fn words(reply: &Value<'_>) -> String {
    match reply {
        Value::Push(values) => joined(values.iter().map(item)),
        Value::List(values) if is_push(reply) => joined(values.iter().map(item)),
        // Cut off if it is long, as that of HELLO or of a script.
        reply => joined([item(reply)]),
    }
}

/// Returns true if the value answers no command.
pub(super) fn is_push(value: &Value<'_>) -> bool {
    let begins_with = |values: &[Value<'_>], kinds: &[&[u8]]| {
        values.first().and_then(Value::bytes).is_some_and(|first| kinds.contains(&first))
    };
    match value {
        Value::Push(values) => !begins_with(values, &CONFIRMED),
        // A subscriber that speaks RESP2 gets plain arrays.
        Value::List(values) => values.len() > 2 && begins_with(values, &PUBLISHED),
        _ => false,
    }
}

fn item(value: &Value<'_>) -> String {
    match value {
        Value::Text(bytes) => key(bytes),
        Value::Error(bytes) => {
            let error = String::from_utf8_lossy(bytes);
            format!("(error) {}", without_owners(&error).escape_debug())
        }
        Value::Nil => "(nil)".to_owned(),
        Value::List(values) | Value::Push(values) => {
            format!("[{}]", values.iter().map(item).collect::<Vec<_>>().join(", "))
        }
        Value::Map(fields) => {
            let fields = fields.chunks(2).map(|field| field.iter().map(item).collect::<Vec<_>>().join(": "));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::read;
    use super::*;

    fn words_of(bytes: &[u8]) -> (String, bool) {
        let (value, end) = read(bytes, 0).unwrap();
        assert_eq!(end, bytes.len());
        (words(&value), is_push(&value))
    }

    #[test]
    fn a_reply_reads_as_in_a_terminal() {
        assert_eq!(words_of(b"+OK\r\n").0, "OK");
        assert_eq!(words_of(b"$-1\r\n").0, "(nil)");
        assert_eq!(words_of(b"_\r\n").0, "(nil)");
        assert_eq!(words_of(b"*3\r\n:1\r\n:7\r\n:-1\r\n").0, "[1, 7, -1]");
        assert_eq!(words_of(b"-NOSCRIPT No script\r\n").0, "(error) NOSCRIPT No script");
        assert_eq!(words_of(b"%1\r\n+proto\r\n:3\r\n").0, "{proto: 3}");
    }

    #[test]
    fn a_published_message_answers_nothing() {
        let published = b"*3\r\n$7\r\nmessage\r\n$25\r\nlock:v1:{orders:42}:freed\r\n$1\r\n1\r\n";
        assert_eq!(words_of(published), ("message orders:42:freed 1".to_owned(), true));
        assert!(!words_of(b">3\r\n+subscribe\r\n+x\r\n:1\r\n").1);
    }
}
