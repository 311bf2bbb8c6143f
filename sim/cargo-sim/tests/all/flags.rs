//! The user's flags and those of the simulator reach the compiler.

use crate::support::{Fixture, tokio};

/// Prints which flags its compiler had.
const PRINTS_FLAGS: &str = "\
#[test]
fn flags() {
    let of_user = cfg!(from_environment) || cfg!(from_build) || cfg!(from_target) || cfg!(from_option);
    assert!(cfg!(madsim) && of_user);
    println!(\"environment {}\", cfg!(from_environment));
    println!(\"build {}\", cfg!(from_build));
    println!(\"target {}\", cfg!(from_target));
    println!(\"option {}\", cfg!(from_option));
}
";

const OF_BUILD: &str = "[build]\nrustflags = [\"--cfg\", \"from_build\"]\n";
const OF_TARGET: &str = "[target.'cfg(all())']\nrustflags = [\"--cfg\", \"from_target\"]\n";

/// Cargo takes one of these sources of flags; the simulator's flags come on top. No package here depends on
/// tokio: then nothing is replaced, and the flags are the same.
#[test]
fn flags_of_each_source_reach_the_compiler() {
    let fixture = Fixture::new("flags", "", PRINTS_FLAGS);
    let arguments = "test --lib -- --nocapture";
    let check = |environment: Option<(&str, &str)>, arguments: &str, expected: &[&str]| {
        let output = fixture.sim(arguments).envs(environment).output().unwrap();
        let printed = crate::support::text(&output);
        for source in ["environment", "build", "target", "option"] {
            let line = format!("{source} {}", expected.contains(&source));
            assert!(printed.contains(&line), "{environment:?} {arguments}: not {line}: {printed}");
        }
        assert!(printed.contains("nothing to replace"), "{printed}");
    };
    fixture.write(".cargo/config.toml", OF_BUILD);
    check(None, arguments, &["build"]);
    fixture.write(".cargo/config.toml", &format!("{OF_BUILD}{OF_TARGET}"));
    check(None, arguments, &["target"]);
    let option = "test --lib --config target.'cfg(all())'.rustflags=['--cfg=from_option'] -- --nocapture";
    check(None, option, &["target", "option"]);
    check(Some(("RUSTFLAGS", "--cfg from_environment")), arguments, &["environment"]);
    let encoded = "--cfg\u{1f}from_environment";
    check(Some(("CARGO_ENCODED_RUSTFLAGS", encoded)), arguments, &["environment"]);
}

/// Fails in a test of documentation unless it is compiled with the simulator's flag and one of the user's.
const DOCUMENTED: &str = "\
//! ```
//! assert!(cfg!(madsim) && cfg!(from_user));
//! ```
";

#[test]
fn flags_of_each_source_reach_tests_of_documentation() {
    let fixture = Fixture::new("documented", "", DOCUMENTED);
    let host = fixture.command(env!("CARGO")).arg("-vV").output().unwrap();
    let host = crate::support::text(&host);
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let without = fixture.fails("test --doc", 101);
    assert!(without.contains("from_user"), "{without}");
    for table in ["build", &format!("target.{host}")] {
        let flags = format!("[{table}]\nrustdocflags = [\"--cfg\", \"from_user\"]\n");
        fixture.write(".cargo/config.toml", &flags);
        fixture.succeeds("test --doc");
    }
    fixture.write(".cargo/config.toml", "");
    let output = fixture.sim("test --doc").env("RUSTDOCFLAGS", "--cfg from_user").output().unwrap();
    assert!(output.status.success(), "{}", crate::support::text(&output));
}

/// Packages from a path show warnings, which a user may have made errors.
#[test]
fn denied_warnings_do_not_break_the_copy_of_tokio() {
    let fixture = Fixture::new("denied", &tokio(), crate::support::USES_TOKIO).with_own_target();
    let output = fixture.sim("test").env("RUSTFLAGS", "-D warnings").output().unwrap();
    assert!(output.status.success(), "{}", crate::support::text(&output));
}
