//! Templates of Valkey's commands on the expiries of hash fields, and of MSETEX.
//!
//! Servers look for expired fields at times of their own. Until then Valkey hides them, but counts them: the
//! scripts in which fields expire keep one that does not, and ask for no number of fields.

use super::templates::Group;

/// The commands that give fields an expiry. Valkey stores such a hash as a table.
const EXPIRING: [&str; 6] = ["HEXPIRE", "HPEXPIRE", "HEXPIREAT", "HPEXPIREAT", "HSETEX", "HGETEX"];

/// Commands on fields whose expiry is far away, has passed, or is wrong.
pub(crate) const LASTING: Group = Group {
    weight: 1,
    may_be_mangled: true,
    templates: &[
        "HEXPIRE <hash> <seconds> FIELDS 1 <member>",
        "HEXPIRE <hash> <seconds> FIELDS 3 <member> <member> <member>",
        "HEXPIRE <hash> <seconds> NX FIELDS 2 <member> <member>",
        "HEXPIRE <hash> <seconds> XX FIELDS 1 <member>",
        "HEXPIRE <hash> 0 FIELDS 2 <member> <member>",
        "HEXPIRE <hash> <seconds> NX XX FIELDS 1 <member>",
        "HEXPIRE <hash> <seconds> FIELDS 2 <member>",
        "HPEXPIRE <hash> 100000 FIELDS 2 <member> <member>",
        "HPEXPIRE <hash> 100000 XX FIELDS 1 <member>",
        "HEXPIREAT <hash> <unix-seconds> FIELDS 1 <member>",
        "HEXPIREAT <hash> <unix-seconds> GT FIELDS 2 <member> <member>",
        "HPEXPIREAT <hash> <far-millis> FIELDS 1 <member>",
        "HPEXPIREAT <hash> <far-millis> GT FIELDS 2 <member> <member>",
        "HPEXPIREAT <hash> <far-millis> LT FIELDS 2 <member> <member>",
        "HPEXPIREAT <hash> <far-millis> XX LT FIELDS 1 <member>",
        "HPEXPIREAT <hash> <far-millis> GT LT FIELDS 1 <member>",
        "HTTL <hash> FIELDS 2 <member> <member>",
        "HPTTL <hash> FIELDS 1 <member>",
        "HEXPIRETIME <hash> FIELDS 1 <member>",
        "HPEXPIRETIME <hash> FIELDS 3 <member> <member> <member>",
        "HPERSIST <hash> FIELDS 2 <member> <member>",
        "HEXPIRE h 1000 FIELDS 2 a b",
        "HPERSIST h FIELDS 2 a b",
        "HSETEX <hash> FIELDS 1 <member> <value>",
        "HSETEX <hash> EX <seconds> FIELDS 2 <member> <value> <member> <value>",
        "HSETEX <hash> PX 100000 FIELDS 1 <member> <value>",
        "HSETEX <hash> EX 0 FIELDS 1 <member> <value>",
        "HSETEX <hash> PXAT <far-millis> FIELDS 1 <member> <value>",
        "HSETEX <hash> EXAT <unix-seconds> FIELDS 1 <member> <value>",
        "HSETEX <hash> KEEPTTL FIELDS 2 <member> <value> <member> <value>",
        "HSETEX <hash> NX EX <seconds> FIELDS 1 <member> <value>",
        "HSETEX <hash> XX FIELDS 1 <member> <value>",
        "HSETEX <hash> FNX EX <seconds> FIELDS 2 <member> <value> <member> <value>",
        "HSETEX <hash> FXX KEEPTTL FIELDS 1 <member> <value>",
        "HSETEX <hash> EX <seconds> KEEPTTL FIELDS 1 <member> <value>",
        "HSETEX <hash> EX <seconds> PX 100000 FIELDS 1 <member> <value>",
        "HSETEX <hash> FNX FXX FIELDS 1 <member> <value>",
        "HGETEX <hash> FIELDS 2 <member> <member>",
        "HGETEX <hash> EX <seconds> FIELDS 2 <member> <member>",
        "HGETEX <hash> PX 0 FIELDS 1 <member>",
        "HGETEX <hash> PXAT <far-millis> FIELDS 1 <member>",
        "HGETEX <hash> PERSIST FIELDS 2 <member> <member>",
        "HGETEX <hash> PERSIST EX <seconds> FIELDS 1 <member>",
        "HGETDEL <hash> FIELDS 1 <member>",
        "HGETDEL <hash> FIELDS 3 <member> <member> <member>",
        "HSET <hash> <member> <value> <member> <value> <member> <value>",
        "HSET <hash> <member> <value>",
        "HSETNX <hash> <member> <value>",
        "HDEL <hash> <member> <member>",
        "HINCRBY <hash> <member> 1",
        "HINCRBYFLOAT <hash> <member> <float>",
        "HGETALL <hash>",
        "HMGET <hash> <member> <member>",
        "HLEN <hash>",
        "OBJECT ENCODING h",
        "EXISTS <hash> <hash>",
        "COPY <hash> <hash> REPLACE",
        "RENAME <hash> <hash>",
        "DEL <hash>",
        "PEXPIRE <hash> 100000",
        "SET a <value>",
    ],
};

/// Commands on fields that may expire, in a hash with another field.
pub(crate) const LAPSING: Group = Group {
    weight: 1,
    may_be_mangled: false,
    templates: &[
        "HPEXPIRE h <millis> FIELDS 1 <member>",
        "HPEXPIRE h <millis> FIELDS 3 <member> <member> <member>",
        "HPEXPIRE h <millis> NX FIELDS 2 <member> <member>",
        "HPEXPIREAT h <unix-millis> FIELDS 2 <member> <member>",
        "HPEXPIREAT h <unix-millis> GT FIELDS 2 <member> <member>",
        "HPEXPIREAT h <unix-millis> LT FIELDS 2 <member> <member>",
        "HPTTL h FIELDS 3 <member> <member> <member>",
        "HPEXPIRETIME h FIELDS 2 <member> <member>",
        "HPERSIST h FIELDS 2 <member> <member>",
        "HSETEX h PX <millis> FIELDS 1 <member> <value>",
        "HSETEX h PX <millis> FIELDS 2 <member> <value> <member> <value>",
        "HSETEX h FNX PX <millis> FIELDS 2 <member> <value> <member> <value>",
        "HSETEX h FXX KEEPTTL FIELDS 1 <member> <value>",
        "HSETEX h KEEPTTL FIELDS 2 <member> <value> <member> <value>",
        "HGETEX h PX <millis> FIELDS 2 <member> <member>",
        "HGETEX h PERSIST FIELDS 2 <member> <member>",
        "HGETDEL h FIELDS 2 <member> <member>",
        "HSET h <member> <value> <member> <value>",
        "HMSET h <member> <value> <member> <value>",
        "HSETNX h <member> <value>",
        "HDEL h <member> <member>",
        "HINCRBY h <member> 1",
        "HINCRBYFLOAT h <member> <float>",
        "HGET h <member>",
        "HMGET h <member> <member>",
        "HEXISTS h <member>",
        "HSTRLEN h <member>",
        "HGETALL h",
        "HKEYS h",
        "HVALS h",
    ],
};

/// MSETEX, and the commands that show what it did.
pub(crate) const KEYS: Group = Group {
    weight: 1,
    may_be_mangled: true,
    templates: &[
        "MSETEX 1 <key> <value>",
        "MSETEX 2 <key> <value> <key> <value>",
        "MSETEX 2 <key> <value> <key> <value> NX",
        "MSETEX 2 <key> <value> <key> <value> XX PX <millis>",
        "MSETEX 2 <key> <value> <key> <value> EX <seconds> NX",
        "MSETEX 1 <key> <value> KEEPTTL",
        "MSETEX 2 <key> <value> <key> <value> PXAT <unix-millis>",
        "MSETEX 1 <key> <value> EXAT <unix-seconds> XX",
        "MSETEX 1 <key> <value> EX <seconds> KEEPTTL",
        "MSETEX 1 <key> <value> NX XX",
        "MSETEX 2 <key> <value> <key>",
        "SET <key> <value> PX <millis>",
        "MGET <key> <key>",
        "PTTL <key>",
        "DEL <key>",
    ],
};

/// The command with which a script of [`LAPSING`] begins.
pub(crate) const KEPT: [&str; 4] = ["HSET", "h", "kept", "1"];

/// Returns true if the command may have made a hash a table, which has no order.
pub(crate) fn makes_table(words: &[Vec<u8>]) -> bool {
    EXPIRING.iter().any(|name| words[0].eq_ignore_ascii_case(name.as_bytes()))
}

/// Returns the names of the commands in all groups.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let templates = [&LASTING, &LAPSING, &KEYS].into_iter().flat_map(|group| group.templates.iter().copied());
    templates.filter_map(|template| template.split(' ').next())
}
