//! Scripts run in a real Lua 5.1, with the same environment and replies as in Redis.

use super::support::{Client, Clock, run, server};

/// Runs every script of the table, in order, on one server.
#[test]
fn scripts_answer_as_on_the_live_server() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let table = include_str!("scripts.txt").lines().skip(1);
        let lines: Vec<&str> = table.collect();
        let mut differences = Vec::new();
        for pair in lines.chunks(2) {
            let (script, expected) = (pair[0], pair[1].trim_start());
            let got = client.call_words(&["EVAL", script, "0"]).await;
            if got != expected {
                differences.push(format!("{script}\n  Redis: {expected}\n  ours:  {got}"));
            }
        }
        assert!(lines.len() > 250, "the table has only {} lines", lines.len());
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    });
}

#[test]
fn a_loaded_script_is_known_to_its_server_only() {
    run(async {
        let clock = Clock::new();
        let (one, other) = (server(&clock), server(&clock));
        let (mut client, mut elsewhere) = (Client::new(&one), Client::new(&other));
        let name = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
        let unknown = "-NOSCRIPT No matching script. Please use EVAL.";
        assert_eq!(client.call(&format!("EVALSHA {name} 0")).await, unknown);
        assert_eq!(client.call_words(&["SCRIPT", "LOAD", "return 1"]).await, format!("\"{name}\""));
        assert_eq!(client.call(&format!("EVALSHA {} 0", name.to_uppercase())).await, ":1");
        assert_eq!(elsewhere.call(&format!("EVALSHA {name} 0")).await, unknown);
        assert_eq!(client.call("SCRIPT FLUSH").await, "+OK");
        assert_eq!(client.call(&format!("EVALSHA {name} 0")).await, unknown);
        assert_eq!(client.call_words(&["EVAL", "return 1", "0"]).await, ":1");
        assert_eq!(client.call(&format!("EVALSHA {name} 0")).await, ":1");
    });
}

#[test]
fn scripts_can_not_change_globals_for_later_scripts() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        for attempt in [
            "x = 1",
            "_G.x = 1",
            "rawset(_G, 'x', 1)",
            "string.x = 1",
            "redis.call = nil",
            "getmetatable('').__index.x = 1",
            "getmetatable('').x = 1",
            "getmetatable(_G).__index = nil",
            "setmetatable(_G, nil)",
            "math.random = nil",
            "loadstring('x = 1')()",
            "load(function() return nil end)() x = 1",
        ] {
            let reply = client.call_words(&["EVAL", attempt, "0"]).await;
            assert!(reply.contains("Attempt to modify a readonly table"), "{attempt}: {reply}");
        }
        for probe in ["return x", "return print", "return os", "return io", "return require", "return debug"]
        {
            let reply = client.call_words(&["EVAL", probe, "0"]).await;
            assert!(reply.contains("nonexistent global variable"), "{probe}: {reply}");
        }
        let compiled = "return tostring((loadstring(string.dump(function() return 1 end))))";
        assert_eq!(client.call_words(&["EVAL", compiled, "0"]).await, r#""nil""#);
    });
}

#[test]
fn changes_to_keys_and_argv_do_not_reach_later_scripts() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let count = "local seen = 0 for _ in pairs(KEYS) do seen = seen + 1 end \
                     for _ in pairs(ARGV) do seen = seen + 1 end \
                     return {seen, #KEYS, #ARGV, KEYS[1], KEYS.x or '', ARGV.x or '', KEYS[3] or '', \
                     ARGV[1] or ''}";
        for spoiling in [
            "KEYS.x = 'left'",
            "ARGV.x = 'left'",
            "KEYS[1] = nil",
            "KEYS[3] = 'left'",
            "KEYS[-1] = 'left' KEYS[0] = 'left'",
            "table.insert(KEYS, 'left') table.insert(ARGV, 1, 'left')",
            "setmetatable(KEYS, {__index = function() return 'left' end})",
            "setmetatable(ARGV, {__newindex = function() end})",
            "ARGV[1] = nil ARGV[2] = nil ARGV[3] = nil error('left')",
            "for at = 1, 100 do KEYS[at] = 'left' end",
            "for at = 1, 100 do KEYS['x' .. at] = 'left' end",
        ] {
            client.call_words(&["EVAL", spoiling, "2", "a", "b", "c", "d", "e"]).await;
            let next = client.call_words(&["EVAL", count, "1", "k"]).await;
            assert_eq!(next, r#"[:1, :1, :0, "k", "", "", "", ""]"#, "{spoiling}");
        }
    });
}

#[test]
fn keys_and_arguments_arrive_complete() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let echo =
            "return {#KEYS, #ARGV, KEYS[1] or '', KEYS[#KEYS] or '', ARGV[1] or '', ARGV[#ARGV] or ''}";
        for (keys, all, expected) in [
            (0, 0, r#"[:0, :0, "", "", "", ""]"#),
            (0, 2, r#"[:0, :2, "", "", "a0", "a1"]"#),
            (1, 2, r#"[:1, :1, "a0", "a0", "a1", "a1"]"#),
            (2, 4, r#"[:2, :2, "a0", "a1", "a2", "a3"]"#),
            (3, 4, r#"[:3, :1, "a0", "a2", "a3", "a3"]"#),
            (5, 1000, r#"[:5, :995, "a0", "a4", "a5", "a999"]"#),
            (900, 1000, r#"[:900, :100, "a0", "a899", "a900", "a999"]"#),
        ] {
            let names: Vec<String> = (0..all).map(|number| format!("a{number}")).collect();
            let count = keys.to_string();
            let mut words = vec!["EVAL", echo, &count];
            words.extend(names.iter().map(String::as_str));
            assert_eq!(client.call_words(&words).await, expected);
        }
    });
}

/// A script that never ends is stopped, or the simulation would hang.
#[test]
fn a_script_that_never_ends_is_stopped() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let catches =
            "local function spin() while true do end end while true do pcall(spin) xpcall(spin, type) end";
        let resumes =
            "while true do coroutine.resume(coroutine.create(function() while true do end end)) end";
        for endless in ["while true do end", catches, resumes] {
            let reply = client.call_words(&["EVAL", endless, "0"]).await;
            assert!(reply.contains("the script ran for too long and was stopped"), "{endless}: {reply}");
        }
        assert_eq!(client.call("PING").await, "+PONG");
    });
}

#[test]
fn a_recursive_table_is_cut_off_with_an_error() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let reply = client.call_words(&["EVAL", "local t = {} t[1] = t return t", "0"]).await;
        assert!(reply.contains("[-ERR reached lua stack limit]"), "{}", reply.len());
        assert_eq!(client.call("PING").await, "+PONG");
    });
}

#[test]
fn every_server_draws_the_same_random_numbers() {
    run(async {
        let clock = Clock::new();
        for _ in 0..2 {
            let mut client = Client::new(&server(&clock));
            // The first two numbers of a fresh Redis 7.0.15.
            let draw = "return {tostring(math.random()), tostring(math.random())}";
            let drawn = client.call_words(&["EVAL", draw, "0"]).await;
            assert_eq!(drawn, r#"["0.39646477363839", "0.84048536971234"]"#);
        }
    });
}

#[test]
fn a_script_that_declares_no_writes_can_not_write() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let refusal = "-ERR Write commands are not allowed from read-only scripts.";
        for write in ["'SET', 'a', '1'", "'PUBLISH', 'news', 'hi'"] {
            let script = format!("#!lua flags=no-writes\nreturn redis.call({write})");
            let reply = client.call_words(&["EVAL", &script, "0"]).await;
            assert!(reply.starts_with(refusal), "{write}: {reply}");
        }
        let read = "#!lua flags=no-writes\nreturn redis.call('GET', 'a')";
        assert_eq!(client.call_words(&["EVAL", read, "0"]).await, "nil");
    });
}

#[test]
fn an_unknown_engine_is_named_in_the_error() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let reply = client.call_words(&["EVAL", "#!nosuch\nreturn 1", "0"]).await;
        assert_eq!(reply, "-ERR Unexpected engine in script shebang: #!nosuch");
    });
}

/// A lock script in its simplest form.
#[test]
fn an_acquire_grants_once_and_counts_once() {
    run(async {
        let clock = Clock::new();
        let mut client = Client::new(&server(&clock));
        let acquire = "
            if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
              return {1, redis.call('INCR', KEYS[2])}
            end
            return {0, redis.call('PTTL', KEYS[1])}";
        let ask = ["EVAL", acquire, "2", "owner", "fence", "a", "2000"];
        assert_eq!(client.call_words(&ask).await, "[:1, :1]");
        clock.advance_ms(500).await;
        assert_eq!(client.call_words(&ask).await, "[:0, :1500]");
        clock.advance_ms(1501).await;
        assert_eq!(client.call_words(&ask).await, "[:1, :2]");
    });
}

/// Errors leave Rust by Lua's `longjmp`. Wherever they are raised and caught, the interpreter must stay sound
/// for the next command.
#[test]
fn errors_of_any_kind_leave_the_interpreter_sound() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let table = [
            ("redis.call('NOPE')", "-ERR Unknown Redis command called from script"),
            ("redis.call()", "-ERR Please specify at least one argument"),
            ("redis.call({})", "-ERR Lua redis lib command arguments must be strings or integers"),
            (
                "redis.call('SET', 'k', nil)",
                "-ERR Lua redis lib command arguments must be strings or integers",
            ),
            ("return redis.pcall('NOPE')", "-ERR Unknown Redis command called from script"),
            ("return {pcall(redis.call, 'NOPE')}", "[nil, \"ERR Unknown Redis command called from script\"]"),
            ("return {xpcall(function() redis.call('NOPE') end, type)}", "[nil, \"table\"]"),
            ("return {xpcall(function() redis.call('NOPE') end, redis.call)}", "[nil"),
            ("return coroutine.wrap(function() return redis.call('NOPE') end)()", "-ERR"),
            (
                "return {coroutine.resume(coroutine.create(function() redis.call('NOPE') end))}",
                "[nil, -ERR Unknown",
            ),
            ("return coroutine.wrap(function() return redis.call('SET', 'k', 'v') end)()", "+OK"),
            ("return (string.gsub('PING', '.+', redis.call))", "-ERR"),
            (
                "local t = setmetatable({}, {__index = redis.call}) return t.x",
                "-ERR Lua redis lib command arguments",
            ),
            ("return setmetatable({}, {__add = redis.pcall}) + 1", "-ERR Lua redis lib command arguments"),
            ("return redis.call('GET', 'k', 'x')", "-ERR Wrong number of args"),
            (
                "local t = {} for i = 1, 7000 do t[i] = 'k' end return redis.call('EXISTS', unpack(t))",
                ":7000",
            ),
            ("local t = {} for i = 1, 9000 do t[i] = 'k' end return redis.call('EXISTS', unpack(t))", "-ERR"),
            ("local function f() return f() + redis.call('EXISTS', 'k') end return f()", "-ERR"),
            ("error(setmetatable({}, {__tostring = redis.call}))", "-ERR"),
            (
                "return {{{{{{{{'deep', redis.call('MGET', 'k', 'n')}}}}}}}}",
                "[[[[[[[[\"deep\", [\"v\", nil]]]]]]]]]",
            ),
            (
                "return {1, {2, {err = 'inner'}}, {ok = 'fine'}, false, true, 2.9}",
                "[:1, [:2, -inner], +fine, nil, :1, :2]",
            ),
        ];
        for _ in 0..200 {
            for (script, expected) in table {
                let reply = client.call_words(&["EVAL", script, "0"]).await;
                assert!(reply.starts_with(expected), "{script}: {reply}");
                assert_eq!(
                    client.call_words(&["EVAL", "return {KEYS[1], ARGV[1]}", "1", "a", "b"]).await,
                    r#"["a", "b"]"#
                );
            }
        }
    });
}

#[test]
fn a_script_gets_the_same_addresses_in_every_run() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let script = "local a, b = {}, {} return {tostring(a), tostring(b), tostring(a), tostring(print_)}";
        let script = script.replace("print_", "redis.call");
        let first = client.call_words(&["EVAL", &script, "0"]).await;
        let table = |number: u64| format!("\"table: 0x{:012x}\"", 0x7f00_0000_0000 + 64 * number);
        let function = format!("\"function: 0x{:012x}\"", 0x7f00_0000_0000_u64 + 64 * 3);
        assert_eq!(first, format!("[{}, {}, {}, {function}]", table(1), table(2), table(1)));
        client.call_words(&["EVAL", "local kept = {} for i = 1, 99 do kept[i] = {} end", "0"]).await;
        assert_eq!(client.call_words(&["EVAL", &script, "0"]).await, first);
        let count =
            "return {collectgarbage('count'), gcinfo(), collectgarbage(), tostring(1), tostring(nil)}";
        let counted = client.call_words(&["EVAL", count, "0"]).await;
        assert_eq!(counted, r#"[:64, :64, :0, "1", "nil"]"#);
    });
}

/// A script that never ends, and counts its rounds.
#[test]
fn a_script_without_an_end_is_stopped_at_the_same_instruction() {
    run(async {
        let mut client = Client::new(&server(&Clock::new()));
        let endless = "while true do redis.call('INCR', KEYS[1]) end";
        let mut counts = Vec::new();
        for (key, rounds) in [("a", "1"), ("b", "333")] {
            let other = "local sum = 0 for i = 1, tonumber(ARGV[1]) do sum = sum + i end return sum";
            client.call_words(&["EVAL", other, "0", rounds]).await;
            client.call_words(&["EVAL", endless, "1", key]).await;
            counts.push(client.call_words(&["GET", key]).await);
        }
        assert_eq!(counts[0], counts[1]);
    });
}
