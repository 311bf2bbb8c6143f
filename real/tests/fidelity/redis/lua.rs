//! Draws scripts for EVAL: those that ship, and small ones.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::{any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::{BoxedStrategy, Strategy, Union};

use super::bodies::BODIES;
use super::collections;
use super::command::{self, Command, Word, mangled, mangling};
use super::libraries;
use super::templates;
use super::wire::Reply;

/// A script that ships, its keys, and the answers that must occur in a run, by their first two lines; `:n` is
/// a single number above 1, a fencing token.
#[derive(Clone, Copy, Debug)]
struct Shipping {
    name: &'static str,
    text: &'static str,
    keys: &'static [&'static str],
    answers: &'static [&'static str],
}

impl Shipping {
    fn folder(&self) -> &'static str {
        self.name.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

macro_rules! shipping {
    ($path:literal, $keys:expr, $answers:expr) => {
        Shipping {
            name: $path,
            text: include_str!(concat!("../../../../dlock/src/", $path)),
            keys: $keys,
            answers: $answers,
        }
    };
}

const SHIPPING: [Shipping; 31] = [
    shipping!("redis/acquire.lua", &["a", "fence"], &[":n", "*3 :1", "*2 :0"]),
    shipping!("redis/acquire_many.lua", &["b", "many", "a", "fence"], &["*2 :1", "*2 *3", "*2 *2"]),
    shipping!("redis/acquire_by_time.lua", &["a", "times"], &[":n", "*3 :1", "*2 :0"]),
    shipping!("redis/renew.lua", &["a"], &[":1", ":0"]),
    shipping!("redis/release.lua", &["a"], &[":1", ":0"]),
    shipping!("redis/release_many.lua", &["a", "b"], &["*2 :1", "*2 :0"]),
    shipping!(
        "redis/permit/acquire_permit.lua",
        &["permits", "owners", "fence"],
        &["*2 :2", "*3 :2", "*3 :1", "*2 :0"]
    ),
    shipping!("redis/permit/renew_permit.lua", &["permits", "owners"], &[":1", ":0"]),
    shipping!("redis/permit/release_permit.lua", &["permits", "owners"], &[":1", ":0"]),
    shipping!("redis/holder.lua", &["a", "fence"], &["*2 $8", "*0"]),
    shipping!(
        "redis/readers/acquire_reader.lua",
        &["a", "readers", "reads", "writers", "fence"],
        &["*2 :2", "*3 :2", "*3 :1", "*2 :0"]
    ),
    shipping!("redis/readers/renew_reader.lua", &["readers", "reads"], &[":1", ":0"]),
    shipping!("redis/readers/release_reader.lua", &["readers", "reads"], &[":1", ":0"]),
    shipping!(
        "redis/readers/acquire_writer.lua",
        &["a", "readers", "reads", "writers", "fence"],
        &["*2 :2", "*3 :1", "*2 :0"]
    ),
    shipping!("redis/readers/release_writer.lua", &["a", "writers"], &[":1", ":0"]),
    shipping!("redis/shared/acquire_shared.lua", &["a", "fence", "shared"], &[":n", "*3 :1", "*2 :0"]),
    shipping!("redis/shared/release_shared.lua", &["a"], &[":1", ":0"]),
    shipping!(
        "redis/queue/acquire_in_turn.lua",
        &["a", "waiters", "patience", "fence"],
        &["*2 :2", "*3 :1", "*3 :0", "*2 :3"]
    ),
    shipping!("redis/queue/release_in_turn.lua", &["a", "waiters", "patience"], &[":1", ":0"]),
    shipping!(
        "redis/queue/acquire_permit_in_turn.lua",
        &["permits", "tokens", "waiters", "patience", "fence"],
        &["*2 :2", "*3 :2", "*3 :1", "*3 :0", "*2 :3"]
    ),
    shipping!(
        "redis/queue/release_permit_in_turn.lua",
        &["permits", "tokens", "waiters", "patience"],
        &[":1", ":0"]
    ),
    shipping!("redis/jobs/enqueue_job.lua", &QUEUE, &[":1", ":0"]),
    shipping!("redis/jobs/claim_job.lua", &["queue", "jobs"], &["*5 :1", "*2 :0", "*1 :0"]),
    shipping!("redis/jobs/extend_job.lua", &["queue", "jobs"], &[":1", ":0"]),
    shipping!("redis/jobs/retry_job.lua", &["queue", "jobs"], &[":1", ":0"]),
    shipping!("redis/jobs/finish_job.lua", &["queue", "jobs"], &[":1", ":0"]),
    shipping!("redis/jobs/bury_job.lua", &QUEUE, &[":1", ":0"]),
    shipping!("redis/jobs/requeue_job.lua", &QUEUE, &[":1", ":0"]),
    shipping!("redis/jobs/dead_jobs.lua", &["jobs", "dead"], &["*2 $1", "*0"]),
    shipping!("redlock/vote.lua", &["a", "fence"], &[":n", "*3 :1", "*3 :0"]),
    shipping!("redlock/raise.lua", &["a", "fence"], &[":1", ":0"]),
];

/// The keys of a job queue.
const QUEUE: [&str; 3] = ["queue", "jobs", "dead"];

/// Draws EVAL, EVALSHA and SCRIPT LOAD of all these scripts.
pub(crate) fn commands() -> BoxedStrategy<Command> {
    let bodies = select(BODIES).prop_map(|body| (String::from("EVAL"), body.to_owned(), no_keys()));
    let calls = calls().prop_map(|text| (String::from("EVAL"), text, no_keys()));
    let libraries = libraries::scripts().prop_map(|text| (String::from("EVAL"), text, no_keys()));
    let scripts = prop_oneof![4 => shipping(), 1 => bodies, 2 => calls, 2 => libraries];
    (scripts, select(&["EVAL", "EVAL", "EVALSHA", "SCRIPT LOAD"][..]), mangling())
        .prop_map(|(script, verb, mangling)| mangled((command(&script, verb), mangling)))
        .boxed()
}

/// Draws EVAL of the scripts that ship, of one family in each strategy: its scripts work on the same keys, so
/// that one finds what another has stored.
pub(crate) fn families() -> impl Iterator<Item = BoxedStrategy<Command>> {
    let folders: BTreeSet<&str> = SHIPPING.iter().map(Shipping::folder).collect();
    folders.into_iter().map(family)
}

/// Draws EVAL of the scripts in a folder.
pub(crate) fn family(folder: &'static str) -> BoxedStrategy<Command> {
    // A job must be stored, claimed and buried before it is dead: these steps come more often.
    let often = ["redis/jobs/enqueue_job.lua", "redis/jobs/claim_job.lua", "redis/jobs/bury_job.lua"];
    let times = |script: &Shipping| if often.contains(&script.name) { 3 } else { 1 };
    let scripts = SHIPPING.into_iter().filter(|script| script.folder() == folder);
    let scripts = scripts.flat_map(|script| std::iter::repeat_n(script, times(&script))).collect();
    let verbs = select(&["EVAL", "EVAL", "EVAL", "EVAL", "EVAL", "EVALSHA"][..]);
    (drawn_of(scripts), verbs).prop_map(|(script, verb)| command(&script, verb)).boxed()
}

/// Returns the kinds of operation among [`commands`].
pub(crate) fn kinds() -> impl Iterator<Item = String> {
    let answers = SHIPPING
        .iter()
        .flat_map(|script| script.answers.iter().map(|answer| format!("{} {answer}", script.name)));
    answers.chain(["EVAL", "EVALSHA", "SCRIPT LOAD"].map(str::to_owned))
}

/// The kinds of operation in the family `redis` on a server that has commands of its own for them.
pub(crate) const ASKING: [&str; 4] =
    ["redis/renew.lua *2 :1", "redis/renew.lua *2 :0", "redis/release.lua *2 :1", "redis/release.lua *2 :0"];

/// The names of the commands among [`commands`].
pub(crate) const NAMES: [&str; 3] = ["EVAL", "EVALSHA", "SCRIPT"];

/// Returns true if `reply`, of the script with this text or digest, contains the remaining time of a lease.
/// Scripts that ship return it only in a table: a single number is a fencing token, which must agree.
pub(crate) fn has_remaining_time(word: &[u8], reply: &Reply) -> bool {
    let reads_time = |text: &str| text.contains("TTL") || text.contains("EXPIRETIME");
    let text = String::from_utf8_lossy(word);
    let is_named =
        |script: &&Shipping| script.text == text || digest(script.text).eq_ignore_ascii_case(&text);
    match SHIPPING.iter().find(is_named) {
        Some(script) => {
            // A script for several claims returns a table with an answer for each.
            let before = usize::from(script.name.ends_with("many.lua"));
            let has_table = reply.lines().iter().skip(before).any(|line| line.starts_with(b"*"));
            reads_time(script.text) && (has_table || reply.is_queued())
        }
        None => reads_time(&text),
    }
}

type Drawn = (String, String, (Vec<&'static str>, Vec<String>));

fn no_keys() -> (Vec<&'static str>, Vec<String>) {
    (Vec::new(), Vec::new())
}

fn shipping() -> impl Strategy<Value = Drawn> {
    drawn_of(SHIPPING.to_vec())
}

fn drawn_of(scripts: Vec<Shipping>) -> impl Strategy<Value = Drawn> {
    let owners = select(&["worker-1", "worker-2"][..]);
    // A TTL; for raise.lua, a token.
    let numbers = select(&["90", "150", "100000", "1", "2", "3"][..]);
    let has_third = any::<bool>();
    (select(scripts), owners, numbers, has_third).prop_map(|(script, owner, number, has_third)| {
        if let Some(args) = queue_args(script.name, owner, number, has_third) {
            return (script.name.to_owned(), script.text.to_owned(), (script.keys.to_vec(), args));
        }
        let is_token = script.name.ends_with("raise.lua");
        let is_short = number.len() == 1;
        let number = if is_token || !is_short { number } else { "100000" };
        let mut args = vec![owner.to_owned(), number.to_owned()];
        let third = match script.name {
            "redlock/vote.lua" => Some("time"),
            // Asks for the server's own commands.
            "redis/renew.lua" | "redis/release.lua" => Some("commands"),
            _ => None,
        };
        if script.name.contains("permit")
            && !script.name.contains("renew")
            && !script.name.ends_with("release_permit.lua")
        {
            // Permits.
            args.push(if has_third { "1" } else { "2" }.to_owned());
        }
        if script.name.ends_with("acquire_writer.lua") {
            // The time for which it bars readers: half a wait, as all short times.
            args.push(if has_third { "30" } else { "5000" }.to_owned());
        }
        if script.name.contains("/acquire") && script.name.ends_with("in_turn.lua") {
            // The most that may wait, the patience and no channel.
            let patience = if is_short { "30" } else { "5000" };
            args.extend([if has_third { "1" } else { "0" }, patience, ""].map(str::to_owned));
        }
        args.extend(third.filter(|_| has_third).map(str::to_owned));
        if script.name.ends_with("many.lua") {
            // The second claim.
            args.extend([String::from("worker-2"), String::from("150")]);
        }
        (script.name.to_owned(), script.text.to_owned(), (script.keys.to_vec(), args))
    })
}

/// Returns the arguments of a script of a job queue; `None` for other scripts. There is one job, and mostly
/// one worker, so that most steps find what they need.
fn queue_args(script: &str, owner: &str, number: &str, is_other: bool) -> Option<Vec<String>> {
    let owner = if number == "3" { owner } else { "worker-1" };
    let token = if number == "2" { number } else { "1" };
    let lease = if number.len() == 1 { "100000" } else { number };
    let claim = format!("{token} {owner}");
    let args: Vec<&str> = match script.strip_prefix("redis/jobs/")? {
        "enqueue_job.lua" => vec!["7", "payload", if number == "90" { "100000" } else { "0" }],
        "claim_job.lua" => vec![owner, lease],
        "extend_job.lua" => vec!["7", &claim, lease],
        "retry_job.lua" if is_other => vec!["7", &claim, "0", "error", "5"],
        "retry_job.lua" => vec!["7", &claim, "0", "error"],
        "bury_job.lua" => vec!["7", &claim, "error"],
        "requeue_job.lua" => vec!["7"],
        "dead_jobs.lua" => vec!["2"],
        _ => vec!["7", &claim],
    };
    Some(args.into_iter().map(str::to_owned).collect())
}

/// Draws EVAL of scripts that call commands on collections.
pub(crate) fn collections() -> BoxedStrategy<Command> {
    let groups = [
        &collections::HASHES,
        &collections::SETS,
        &collections::LISTS,
        &collections::SORTED_SETS,
        &collections::SORTED_RANGES,
        &collections::DATABASES,
    ];
    let commands = Union::new(groups.map(command::of)).boxed();
    let texts = (calls_of(commands), any::<bool>())
        .prop_map(|(text, is_resp3)| if is_resp3 { format!("redis.setresp(3) {text}") } else { text });
    texts.prop_map(|text| command(&(String::from("EVAL"), text, no_keys()), "EVAL")).boxed()
}

/// Returns true if a word holds a text that is too long for the compact encoding of a hash.
pub(crate) fn has_long_text(word: &[u8]) -> bool {
    // In a script, such a text is written with escapes.
    let is_script = word.starts_with(b"re");
    if is_script { word.iter().filter(|byte| **byte == b'\\').count() > 64 } else { word.len() > 64 }
}

/// Returns true if the script `word` counts the keys of a database, of which some may have expired and not
/// been removed yet.
pub(crate) fn counts_keys(word: &[u8]) -> bool {
    String::from_utf8_lossy(word).to_uppercase().contains("'DBSIZE'")
}

/// Returns true if the script `word` reads elements that have no order.
pub(crate) fn has_unordered(word: &[u8], may_have_table: bool) -> bool {
    let text = String::from_utf8_lossy(word).to_uppercase();
    let calls = |name: &str| text.contains(&format!("'{name}'"));
    let of_sets = ["SMEMBERS", "SUNION", "SINTER", "SDIFF", "SSCAN", "KEYS", "SETRESP"];
    let of_hashes = ["HGETALL", "HKEYS", "HVALS", "HSCAN"];
    of_sets.into_iter().any(calls) || (may_have_table && of_hashes.into_iter().any(calls))
}

/// Draws scripts that call commands, and return one or all of the replies.
fn calls() -> impl Strategy<Value = String> {
    calls_of(command::of(&templates::KEYS))
}

fn calls_of(commands: BoxedStrategy<Command>) -> impl Strategy<Value = String> {
    let call = (any::<bool>(), commands).prop_map(|(throws, command)| {
        let words: Vec<_> = command.words.iter().map(in_lua).collect();
        format!("redis.{}({})", if throws { "call" } else { "pcall" }, words.join(", "))
    });
    (vec(call, 1..4), any::<bool>()).prop_map(|(calls, returns_all)| {
        if returns_all {
            return format!("return {{{}}}", calls.join(", "));
        }
        calls.join("\n").replacen("redis.", "return redis.", usize::from(calls.len() == 1))
    })
}

/// Writes a word as a Lua literal.
fn in_lua(word: &Word) -> String {
    let Word::Text(text) = word else { return String::from("'1'") };
    match std::str::from_utf8(text).ok().and_then(|text| text.parse::<i32>().ok()) {
        Some(number) => number.to_string(),
        None if text.iter().all(u8::is_ascii_alphanumeric) => format!("'{}'", String::from_utf8_lossy(text)),
        None => format!("'{}'", text.iter().map(|byte| format!("\\{byte:03}")).collect::<String>()),
    }
}

fn command((kind, text, (keys, args)): &Drawn, verb: &str) -> Command {
    let count = keys.len().to_string();
    let rest = keys.iter().copied().chain(args.iter().map(String::as_str));
    let words: Vec<_> = match verb {
        "SCRIPT LOAD" => ["SCRIPT", "LOAD", text].map(Word::text).to_vec(),
        "EVALSHA" => {
            let head = [verb.to_owned(), digest(text), count];
            head.iter().map(Word::text).chain(rest.map(Word::text)).collect()
        }
        _ => [verb, text, &count].into_iter().chain(rest).map(Word::text).collect(),
    };
    let is_shipping = kind != "EVAL";
    Command::new(if is_shipping && verb == "EVAL" { kind } else { verb }, words)
}

fn digest(text: &str) -> String {
    redis::Script::new(text).get_hash().to_owned()
}
