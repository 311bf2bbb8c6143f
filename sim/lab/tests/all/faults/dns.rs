//! The fault `dns` in schedule files and in searches of the laboratory, whose processes look no name up.

use lab::{LabScene, System};
use sim::entropy::Entropy;
use sim::faults::{Dns, Faults, Role, Scene};
use sim::{Draw, LookUpFault, Span, Strategy};

/// Two clients, of which `a` looks up `b` if this is true.
struct Names(bool);

impl Scene for Names {
    fn processes(&self) -> Vec<String> {
        vec!["a".to_owned(), "b".to_owned()]
    }

    fn role(&self, _: &str) -> Option<Role> {
        Some(Role::Client)
    }

    fn action(&self, _: &str, action: &str) -> Result<(), String> {
        Err(format!("there is no {action}"))
    }

    fn acquires(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn evictable(&self) -> Result<&[String], String> {
        Err("clients".to_owned())
    }

    fn points(&self, process: &str) -> Vec<String> {
        if self.0 && process == "a" { vec!["looks up b".to_owned()] } else { Vec::new() }
    }
}

/// Draws faults, and returns those of lookups.
fn drawn(scene: &Names) -> Vec<Dns> {
    let fault = |seed| Faults::default().draw(scene, &mut Entropy::new(seed).site("test"));
    let faults = (0..2_000).filter_map(fault);
    faults.filter_map(|fault| fault.what.downcast_ref::<Dns>().cloned()).collect()
}

#[test]
fn the_fault_is_drawn_for_processes_that_look_names_up() {
    assert!(drawn(&Names(false)).is_empty());
    let drawn = drawn(&Names(true));
    for how in LookUpFault::ALL {
        assert!(drawn.iter().any(|fault| fault.how == *how), "no {how} lookups");
    }
    assert!(drawn.iter().all(|fault| fault.by.is_some() == (fault.how == LookUpFault::Slow)));
    let processes: Vec<_> = drawn.iter().map(|fault| fault.process.as_deref()).collect();
    assert!(processes.contains(&None) && processes.contains(&Some("a")));
    assert!(!processes.contains(&Some("b")));
}

/// Reads a schedule with the fault. Returns the problem, or "accepted".
fn read(what: &str) -> String {
    let text = format!(
        "about = \"\"\nsystem = \"redis\"\nttl = \"5s\"\n[[worker]]\nname = \"a\"\n[[fault]]\n\
         when = {{ at = \"1s\" }}\nwhat = {{ {what} }}\n"
    );
    match lab::parse("x", &text) {
        Ok(schedule) => {
            assert!(schedule.faults[0].what.downcast_ref::<Dns>().is_some());
            "accepted".to_owned()
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn schedule_files_name_the_fault() {
    assert_eq!(read(r#"dns = "a", how = "slow", by = "2s", for = "5s""#), "accepted");
    assert_eq!(read(r#"dns = "*", how = "failing""#), "accepted");
    assert_eq!(read(r#"dns = "a", how = "stale", for = "5s""#), "accepted");
    for (what, problem) in [
        (r#"dns = "z", how = "stale""#, "unknown process `z` in `dns`"),
        (r#"dns = "a""#, "`dns` needs `how`"),
        (r#"dns = "a", how = "slow""#, "slow lookups need `by`"),
        (r#"dns = "a", how = "stale", by = "2s""#, "`by` does not apply to stale lookups"),
        (r#"dns = "a", how = "slow", by = "0s""#, "`by` is 0s"),
        (r#"dns = "a", how = "gone""#, "gone"),
    ] {
        let refused = read(what);
        assert!(refused.contains(problem), "{refused}");
    }
}

#[test]
fn a_slow_fault_ends_with_its_last_lookup() {
    let slow = Dns { lasts: Some(Span::from_secs(5)), ..Dns::slow("a", Span::from_secs(2)) };
    let schedule = lab::small(System::REDIS);
    let heals = |dns: &Dns| sim::faults::Action::heals_after(dns, &LabScene(&schedule));
    assert_eq!(heals(&slow), Some(Span::from_secs(7)));
    assert_eq!(heals(&Dns { lasts: None, ..slow }), None);
    assert_eq!(Dns::stale("a").how, LookUpFault::Stale);
}

#[test]
fn the_row_changes_no_other_draw() {
    let verbs: Vec<_> = Faults::default().verbs().into_iter().filter(|verb| *verb != "dns").collect();
    let schedule = lab::small(System::REDIS);
    let scene = LabScene(&schedule);
    for seed in 0..500 {
        for strategy in [Strategy::Uniform, Strategy::Swarm] {
            let draw = |faults: &Faults| Draw::new(seed).by(strategy).faults(faults, &scene, &Vec::new);
            for (all, without) in [
                (Faults::default(), Faults::default().only(&verbs)),
                (Faults::default().widely(), Faults::default().widely().only(&verbs)),
            ] {
                assert_eq!(draw(&all), draw(&without), "{strategy}, seed {seed}");
            }
        }
    }
}
