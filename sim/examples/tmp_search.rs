use sim::lab::{Arm, System, draw_for, excused, run};
fn main() {
    let mut args = std::env::args().skip(1);
    let system: System = args.next().unwrap().parse().unwrap();
    let first: u64 = args.next().unwrap().parse().unwrap();
    let count: u64 = args.next().unwrap().parse().unwrap();
    let mut accused = 0;
    for seed in first..first + count {
        let schedule = draw_for(system, seed);
        let report = match run(&schedule, Arm::Fenced, seed) {
            Ok(r) => r,
            Err(e) => {
                println!("{system} {seed} ERROR {e}");
                continue;
            }
        };
        let ex = excused(&schedule, Arm::Fenced);
        let kinds: Vec<_> = report
            .verdicts
            .iter()
            .filter(|v| !ex.contains(&v.kind))
            .map(|v| (v.kind, v.detail.clone()))
            .collect();
        if !kinds.is_empty() {
            accused += 1;
            println!("{system} {seed} {kinds:?}");
        }
        if (seed - first) % 5000 == 4999 {
            println!("{system} at {} accused {accused}", seed + 1);
        }
    }
    println!("{system} done {count} accused {accused}");
}
