//! The origin of results: the shares of the strategies, and a number for the behaviour of the simulator.

use lab::museum::Museum;
use lab::{Arm, System};
use sim::explore::Portfolio;
use sim::{Draw, RunError, Strategy, Subject};

use super::results::Origin;

/// The number of schedules on each system whose runs tell one program from another.
const SCHEDULES: u64 = 4;

/// Returns the origin of rows that this program measures.
///
/// # Errors
///
/// [`RunError`] if a schedule can't be drawn or run.
pub(super) fn origin(portfolio: &Portfolio) -> Result<Origin, RunError> {
    Ok(Origin { shares: shares(portfolio), program: program()? })
}

/// Describes the turns of a portfolio, such as `uniform 4, aimed 8`.
pub(super) fn shares(portfolio: &Portfolio) -> String {
    let turns = portfolio.shares().into_iter().filter(|(_, turns)| *turns > 0);
    let shares: Vec<String> = turns.map(|(strategy, turns)| format!("{strategy} {turns}")).collect();
    shares.join(", ")
}

/// Returns a number that tells what the simulator does from what it did before a change: it is made of the
/// histories of some drawn schedules of each system, by each strategy that a seed alone decides.
///
/// # Errors
///
/// [`RunError`] if a schedule can't be drawn or run.
pub(super) fn program() -> Result<String, RunError> {
    let mut all: u64 = 0;
    for system in System::searched() {
        let museum = Museum::new(Arm::Fenced).drawing(system);
        for seed in 0..SCHEDULES {
            for strategy in [Strategy::Uniform, Strategy::Aimed, Strategy::Swarm, Strategy::Ordered] {
                let schedule = museum.schedule(&mut Draw::new(seed).by(strategy))?;
                let hash = sim::sim::run(&museum, &schedule)?.hash;
                all = all.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ hash;
            }
        }
    }
    Ok(format!("{all:016x}"))
}
