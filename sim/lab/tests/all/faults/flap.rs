//! A fault defined outside the crate: with one type and one table row, schedule files can name it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sim::faults::{
    Action, Fault, FaultCheck, FaultKind, Faults, Fields, Form, Link, Misread, NETWORK, Scene, Strike,
    Trigger,
};
use sim::{Draw, Invalid, LinkFault, NoOptions, Process, Sim, Span, Subject};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Cuts a link again and again: `{ flap = ["a", "b"], every = "200ms", times = 3 }`.
#[derive(Debug)]
struct Flap {
    link: Link,
    /// The duration of each cut, and of the time between two cuts.
    every: Span,
    times: u64,
}

static FLAP: FaultKind = FaultKind {
    verb: "flap",
    fields: &["every", "times"],
    read,
    variants: &[],
    wide: &[],
    forms: |lease| vec![Form::of_links(200, "flap", "a flapping link", true, move |link| flap(link, lease))],
    class: None,
};

fn flap(link: &Link, every: Span) -> Flap {
    Flap { link: link.clone(), every, times: 2 }
}

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let link = fields.need("flap", "flap", "the link")?;
    let every = fields.need("flap", "every", "for how long")?;
    Ok(Arc::new(Flap { link, every, times: fields.take("times")?.unwrap_or(2) }))
}

impl Action for Flap {
    fn verb(&self) -> &'static str {
        FLAP.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("flap", &self.link);
        fields.put("every", &self.every);
        fields.put("times", &self.times);
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.link.from, &self.link.to]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        check.link(&self.link)?;
        check.lasting("every", Some(self.every))
    }

    fn strike(&self, strike: &Strike) {
        cut(strike, self.link.clone(), self.every, self.times);
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        Some(self.every.times(2 * self.times))
    }
}

/// Cuts the link for `every`, heals it for as long, and repeats this; cuts it `times` times in all.
fn cut(strike: &Strike, link: Link, every: Span, times: u64) {
    if times == 0 {
        return;
    }
    let links = strike.directions(&link, true);
    links.iter().for_each(|(from, to)| strike.world().cut(*from, *to));
    let effect = strike.on_links(LinkFault::Cut, &links);
    let begun = strike.begins(NETWORK, effect, Some(every), &format!("flaps {}", link.arrow(true)));
    begun.until("holds again", move |strike| {
        links.iter().for_each(|(from, to)| strike.world().heal(*from, *to));
        strike.after(every, move |strike| cut(strike, link, every, times - 1));
    });
}

/// Two processes; one pings the other.
struct Pings;

impl Subject for Pings {
    type Options = NoOptions;

    fn draw(&self, _: &mut Draw) -> NoOptions {
        NoOptions::default()
    }

    fn build(&self, _: &NoOptions, sim: &mut Sim) -> Result<(), Invalid> {
        sim.process("a", |process| async move { ping(process).await.unwrap() });
        sim.process("b", |process| async move { receive(process).await.unwrap() });
        Ok(())
    }

    fn faults(&self) -> Faults {
        Faults::default().with(&FLAP)
    }
}

async fn ping(process: Process) -> io::Result<()> {
    process.sleep(Duration::from_millis(10)).await;
    let mut stream = process.connect("b:80").await?;
    for _ in 0..20 {
        stream.write_all(b"!").await?;
        process.sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

async fn receive(process: Process) -> io::Result<()> {
    let mut listener = process.listen(80)?;
    let (mut stream, _) = listener.accept().await;
    while stream.read(&mut [0; 8]).await? > 0 {
        process.point("received");
    }
    Ok(())
}

const SCHEDULE: &str = r#"
about = "the link flaps"

[[fault]]
when = { process = "b", after = "received" }
what = { flap = ["a", "b"], every = "100ms", times = 3 }
"#;

#[test]
fn a_file_can_name_a_fault_of_its_subject() {
    let schedule = sim::sim::parse(&Pings, "flap", SCHEDULE).unwrap();
    assert_eq!(sim::sim::parse(&Pings, "flap", &schedule.to_toml()).unwrap(), schedule);
    let report = sim::sim::run(&Pings, &schedule).unwrap();
    assert_eq!(report.trace().matches("flaps a ↔ b").count(), 3, "{}", report.trace());
    assert_eq!(report.trace().matches("holds again").count(), 3, "{}", report.trace());
}

#[test]
fn its_effect_is_drawn_until_it_ends() {
    let schedule = sim::sim::parse(&Pings, "flap", SCHEDULE).unwrap();
    let drawn = sim::explore::pictured(&Pings, &schedule, "run").unwrap();
    let bars: Vec<_> = drawn.spans.iter().filter(|span| span.kind == picture::SpanKind::Link).collect();
    assert_eq!(bars.len(), 3, "one for each cut");
    let millis = |bar: &&picture::Span| (bar.to.at.0 - bar.from.at.0) / 1_000_000;
    assert_eq!(bars.iter().map(millis).collect::<Vec<_>>(), [100; 3]);
}

#[test]
fn an_exhaustive_search_places_it() {
    let start = sim::explore::exhaust::base(&Pings, 0).unwrap();
    let scope = sim::explore::exhaust::Scope::of(1);
    let claim = sim::explore::exhaust(&Pings, &start, &scope, |_| true).unwrap().claim();
    assert!(claim.contains("- a flapping link: a ↔ b\n"), "{claim}");
}

#[test]
fn an_error_names_the_line_of_the_fault() {
    let refused = |good: &str, bad: &str| {
        sim::sim::parse(&Pings, "flap", &SCHEDULE.replace(good, bad)).unwrap_err().to_string()
    };
    assert_eq!(refused("\"100ms\"", "\"0s\""), "flap:6: `every` is 0s: the fault would do nothing");
    assert_eq!(refused(", every = \"100ms\"", ""), "flap:6: `flap` needs `every`: for how long");
    let unknown = "flap:6: unknown process `c` in `flap`: the schedule has a, b";
    assert_eq!(refused("\"b\"], every", "\"c\"], every"), unknown);
    let without_flap = |sim: &mut Sim| Pings.build(&NoOptions::default(), sim).unwrap();
    let text = sim::sim::parse(&without_flap, "flap", SCHEDULE).unwrap_err().to_string();
    assert!(text.starts_with("flap:6: unknown field `every`, expected one of `pause`"), "{text}");
}

#[test]
fn a_fault_in_code_needs_no_table_row() {
    let flap = Flap { link: Link::new("a", "b"), every: Span::from_millis(100), times: 3 };
    let mut sim = Sim::new(0);
    Pings.build(&NoOptions::default(), &mut sim).unwrap();
    let report = sim.fault(Fault::new(Trigger::after("b", "received"), flap)).run().unwrap();
    assert_eq!(report.struck, [true]);
}
