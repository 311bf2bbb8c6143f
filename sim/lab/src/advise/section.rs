//! The schedule of one critical section, drawn from a seed.

use sim::entropy::{Entropy, Site};
use sim::faults::{Crash, Cut, Fault, Link, Pause, Reset, Trigger};
use sim::sim::{Latency, Network};
use sim::{Schedule, Span};

use super::measured::{Measured, Terms};
use super::work::{in_micros, unit};
use crate::{Options, Point, System, Worker, schedule};

/// The worker whose lease may be lost.
pub(super) const HOLDER: &str = "a";
/// The worker that waits for it.
pub(super) const WAITER: &str = "b";
/// The lock server.
const SERVER: &str = "redis-1";

/// One pause in ten comes right before the write, when nothing can stop it any more.
const BEFORE_WRITE: u64 = 10;

/// The latency of the network where nothing disturbs it: that of one data centre.
const LATENCY: Latency = Latency { min: Span::from_nanos(50_000), max: Span::from_nanos(200_000) };

/// Draws the schedule of a section with leases of `ttl` on one Redis. Work, pause and network are the same
/// for each TTL.
///
/// The holder `a` works under the lock, and meets one pause of its process and one time without network to
/// the lock server, both of random length at random moments: exponential, 99 of 100 within the measured time.
/// With the share of `loss` its connection breaks as well. Then it writes. `b` waits for the lock and writes
/// at once.
pub fn section(measured: &Measured, terms: &Terms, ttl: Span, seed: u64) -> Schedule<Options> {
    let mut site = Entropy::new(seed).site("advise");
    let work = measured.work.draw(&mut site);
    let (pause, outage) = (short_of(measured.pause, &mut site), short_of(measured.network, &mut site));
    let moments = [(); 3].map(|()| moment(work, &mut site));
    let (comes_last, breaks) = (site.below(BEFORE_WRITE) == 0, site.chance(measured.loss));
    let mut schedule = two_workers(measured, terms, ttl, work);
    schedule.limit = schedule.limit.plus(pause).plus(outage);
    schedule.options.workers[1].deadline = schedule.limit;
    schedule.seed = seed;
    let link = Link::new(HOLDER, SERVER);
    if !pause.is_zero() {
        let when = if comes_last { Trigger::after(HOLDER, Point::Checked) } else { moments[0].clone() };
        schedule.faults.push(Fault::new(when, Pause { process: HOLDER.to_owned(), lasts: Some(pause) }));
    }
    if !outage.is_zero() {
        let cut = Cut { link: link.clone(), both: true, lasts: Some(outage) };
        schedule.faults.push(Fault::new(moments[1].clone(), cut));
    }
    if breaks {
        schedule.faults.push(Fault::new(moments[2].clone(), Reset { link }));
    }
    schedule
}

/// Draws the schedule of a section in which the holder crashes at a random moment of its work.
pub(super) fn crash(measured: &Measured, terms: &Terms, ttl: Span, seed: u64) -> Schedule<Options> {
    let mut site = Entropy::new(seed).site("advise a crash");
    let work = measured.work.draw(&mut site);
    let mut schedule = two_workers(measured, terms, ttl, work);
    schedule.seed = seed;
    let crash = Crash { process: HOLDER.to_owned(), power_loss: false, restart_after: None };
    schedule.faults.push(Fault::new(moment(work, &mut site), crash));
    schedule
}

fn two_workers(measured: &Measured, terms: &Terms, ttl: Span, work: Span) -> Schedule<Options> {
    let renew_cap = measured.renews.then_some(terms.cap);
    let holder = Worker { work, renew: measured.renews, renew_cap, ..Worker::new(HOLDER) };
    let (starts, brief) = (Span::from_millis(2), Span::from_millis(1));
    // Longer than the section, an acquire and its retries.
    let limit = work.times(2).plus(ttl.times(4)).plus(Span::from_secs(30));
    let waiter = Worker { starts, work: brief, deadline: limit, ..Worker::new(WAITER) };
    let about = format!("A critical section of {work} under a lease of {ttl}, drawn by `sim advise`");
    let mut schedule = schedule(&about, System::REDIS, ttl, vec![holder, waiter]);
    schedule.limit = limit;
    schedule.network = Network { latency: LATENCY };
    schedule
}

/// Draws a length that is within `within` in 99 of 100 draws, from an exponential distribution.
fn short_of(within: Span, site: &mut Site) -> Span {
    let mean = within.as_nanos() as f64 / 100_f64.ln();
    in_micros(-(1.0 - unit(site)).ln() * mean)
}

/// Draws a moment of the work.
fn moment(work: Span, site: &mut Site) -> Trigger {
    let plus = in_micros(unit(site) * work.as_nanos() as f64);
    Trigger::After { process: HOLDER.to_owned(), point: Point::Entered.name().to_owned(), nth: 1, plus }
}
