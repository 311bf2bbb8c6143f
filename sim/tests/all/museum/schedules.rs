//! Schedules aimed at one mistake each. The correct lock and resource meet the demands, the mutant does not.

/// Returns a schedule of a holder that renews, and a later worker. The holder is cut off as soon as it works,
/// so its renewals fail.
fn cut_off(about: &str, options: &str, fault: &str) -> String {
    format!(
        r#"
about  = "{about}; then the holder is cut off"
system = "redis"
ttl    = "2s"
{options}

[[worker]]
name  = "a"
work  = "5s"
renew = true

[[worker]]
name   = "b"
starts = "300ms"

{fault}

[[fault]]
when = {{ process = "a", after = "entered" }}
what = {{ cut = ["a", "redis-1"], for = "4s" }}

[expect.fenced]
verdicts = []
accepted = ["b:2"]
"#
    )
}

/// Returns a schedule in which the grant's reply is slow and then the renewals fail. A holder that counts
/// validity from the reply believes in it for too long.
pub fn slow_reply() -> String {
    let fault = r#"
[[fault]]
when = { process = "redis-1", after = "granted" }
what = { delay = ["redis-1", "a"], by = "350ms", both = false, for = "50ms" }
"#;
    cut_off("The grant's reply takes 350 ms", "", fault)
}

/// Returns a schedule with a wide drift margin, in which the renewals fail.
pub fn wide_margin() -> String {
    cut_off("The margin is 300 ms", r#"drift_margin = "300ms""#, "")
}

/// Returns a schedule in which the wall clock steps back during the acquire.
pub fn clock_steps_back() -> String {
    let fault = r#"
[[fault]]
when = { process = "redis-1", after = "granted" }
what = { step = "a", by = "-350ms" }
"#;
    cut_off("The holder's wall clock steps back while its acquire is under way", "", fault)
}

/// The lease is gone before its first renewal, and another holder has written and released.
pub const EVICTED_BEFORE_RENEWAL: &str = r#"
about  = "The holder's key is evicted; another one acquires, writes and releases before the holder renews"
system = "redis"
ttl    = "3s"

[[worker]]
name  = "a"
work  = "2s"
renew = true
check = false

[[worker]]
name   = "b"
starts = "150ms"

[[fault]]
when = { process = "a", after = "entered", plus = "50ms" }
what = { evict = "orders:42", part = "owner" }

[expect.unfenced]
verdicts = ["overlap", "two_valid", "unheld"]
accepted = ["b:2"]
"#;

/// The lease is gone before its holder has read the answer, and another holder has the next token.
pub const EVICTED_BEFORE_ANSWER: &str = r#"
about  = "The holder stops before it has its answer; its key is evicted and another one acquires"
system = "redis"
ttl    = "4s"

[[worker]]
name = "a"

[[worker]]
name   = "b"
starts = "50ms"
work   = "2s"

[[fault]]
when = { process = "redis-1", after = "granted" }
what = { evict = "orders:42", part = "owner" }

[[fault]]
when = { process = "redis-1", after = "granted" }
what = { pause = "a", for = "300ms" }

[expect.unfenced]
verdicts = ["overlap", "two_valid", "unheld"]
accepted = ["a:1", "b:2"]
"#;

/// Two writes reach the resource at the same time.
pub const WRITES_MEET: &str = r#"
about  = "The old holder's write and the new one's reach the resource at the same time"
system = "redis"
ttl    = "2s"

[[worker]]
name  = "a"
check = false

[[worker]]
name   = "b"
starts = "100ms"

[[fault]]
when = { process = "a", after = "worked" }
what = { pause = "a" }

[[fault]]
when = { process = "b", after = "sent" }
what = { resume = "a" }

[expect.fenced]
verdicts = ["overlap"]
"#;
