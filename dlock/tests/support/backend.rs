//! A lock server that does as it is told, call by call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::backend::{Answer, Backend, BackendError, Claim, Renewal, Trail};
use dlock::{FencingToken, Instant, Released, Runtime};

use super::World;

/// What the server makes of one call. Without orders it does the usual thing at once.
#[derive(Clone)]
pub enum Order {
    /// Does it, and answers after that time.
    After(Duration),
    /// Says that another owner has the lease, for that time.
    Held(Option<Duration>),
    /// Puts the caller in line at that place; its turn comes after that time.
    Queued(u64, Duration),
    /// Says that the caller does not own the lease.
    NotOwner,
    /// The same, after that time.
    NotOwnerAfter(Duration),
    /// Executes it and never answers.
    LoseAnswer,
    /// Answers with an error.
    Fail(BackendError),
}

/// A call that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub what: &'static str,
    pub owner: String,
    pub at: Instant,
}

#[derive(Clone)]
pub struct Fake {
    world: World,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    acquires: VecDeque<Order>,
    renewals: VecDeque<Order>,
    releases: VecDeque<Order>,
    /// When the turn of the one that was queued comes, or what its watch fails with.
    turn: Option<Result<Instant, BackendError>>,
    /// Watches are asked for in vain: they fail when their time is over.
    hides_turns: bool,
    calls: Vec<Call>,
    granted: u64,
}

/// Open while a grant may exist that the client has not been told of.
#[derive(Default)]
pub struct Asked(bool);

impl Trail for Asked {
    fn is_open(&self) -> bool {
        self.0
    }
}

impl Fake {
    pub fn new(world: &World) -> Self {
        Self { world: world.clone(), state: Arc::default() }
    }

    pub fn on_acquire(&self, orders: impl IntoIterator<Item = Order>) {
        self.state.lock().unwrap().acquires.extend(orders);
    }

    pub fn on_renew(&self, orders: impl IntoIterator<Item = Order>) {
        self.state.lock().unwrap().renewals.extend(orders);
    }

    pub fn on_release(&self, orders: impl IntoIterator<Item = Order>) {
        self.state.lock().unwrap().releases.extend(orders);
    }

    /// The next watch of a queued claim fails.
    pub fn on_turn(&self, error: BackendError) {
        self.state.lock().unwrap().turn = Some(Err(error));
    }

    /// Watches get no answer.
    pub fn hide_turns(&self) {
        self.state.lock().unwrap().hides_turns = true;
    }

    /// The calls of one kind, in order of arrival.
    pub fn calls(&self, what: &str) -> Vec<Call> {
        self.state.lock().unwrap().calls.iter().filter(|call| call.what == what).cloned().collect()
    }

    async fn obey(
        &self,
        what: &'static str,
        claim: &Claim,
        patience: Instant,
    ) -> Result<Order, BackendError> {
        let call = Call { what, owner: claim.owner.as_str().into(), at: self.world.now() };
        let order = {
            let mut state = self.state.lock().unwrap();
            state.calls.push(call);
            let orders = match what {
                "acquire" => &mut state.acquires,
                "renew" => &mut state.renewals,
                _ => &mut state.releases,
            };
            orders.pop_front().unwrap_or(Order::After(Duration::ZERO))
        };
        match &order {
            Order::After(time) | Order::NotOwnerAfter(time) => {
                self.world.sleep_until(self.world.now() + *time).await
            }
            Order::LoseAnswer => {
                self.world.sleep_until(patience).await;
                return Err(BackendError::NoAnswer);
            }
            Order::Fail(error) => return Err(error.clone()),
            Order::Held(_) | Order::Queued(..) | Order::NotOwner => {}
        }
        Ok(order)
    }
}

impl Backend for Fake {
    type Runtime = World;
    type Trail = Asked;

    fn runtime(&self) -> &World {
        &self.world
    }

    async fn acquire(
        &self,
        claim: &Claim,
        trail: &mut Asked,
        patience: Instant,
    ) -> Result<Answer, BackendError> {
        let since = self.world.now();
        trail.0 = true;
        let order = self.obey("acquire", claim, patience).await?;
        trail.0 = false;
        if let Order::Held(left) = order {
            return Ok(Answer::Held { left });
        }
        let mut state = self.state.lock().unwrap();
        if let Order::Queued(position, time) = order {
            trail.0 = true;
            state.turn.get_or_insert(Ok(self.world.now() + time));
            return Ok(Answer::Queued { position });
        }
        state.granted += 1;
        let token = FencingToken::new(state.granted).unwrap();
        Ok(Answer::Granted { token, since, left: claim.ttl })
    }

    async fn turn(&self, _: &Claim, _: &mut Asked, until: Instant) -> Result<(), BackendError> {
        if self.state.lock().unwrap().hides_turns {
            self.world.sleep_until(until).await;
            return Err(BackendError::NoAnswer);
        }
        let turn = self.state.lock().unwrap().turn.take();
        self.world.sleep_until(turn.unwrap_or(Ok(until))?.min(until)).await;
        Ok(())
    }

    async fn renew(
        &self,
        claim: &Claim,
        _trail: &mut Asked,
        patience: Instant,
    ) -> Result<Renewal, BackendError> {
        let since = self.world.now();
        match self.obey("renew", claim, patience).await? {
            Order::NotOwner | Order::NotOwnerAfter(_) => Ok(Renewal::NotOwner),
            _ => Ok(Renewal::Extended { since, left: claim.ttl }),
        }
    }

    async fn release(
        &self,
        claim: &Claim,
        trail: &mut Asked,
        patience: Instant,
    ) -> Result<Released, BackendError> {
        let order = self.obey("release", claim, patience).await?;
        trail.0 = false;
        Ok(if matches!(order, Order::NotOwner | Order::NotOwnerAfter(_)) {
            Released::NotOwner
        } else {
            Released::Done
        })
    }
}

/// The same server, whose leases end with the client's session of a minute and not by a TTL.
#[derive(Clone)]
pub struct InSession(pub Fake);

impl Backend for InSession {
    type Runtime = World;
    type Trail = Asked;

    const EXPIRES: bool = false;

    fn runtime(&self) -> &World {
        self.0.runtime()
    }

    fn ttl_max(&self) -> Option<Duration> {
        Some(Duration::from_secs(60))
    }

    async fn acquire(
        &self,
        claim: &Claim,
        trail: &mut Asked,
        patience: Instant,
    ) -> Result<Answer, BackendError> {
        self.0.acquire(claim, trail, patience).await
    }

    async fn turn(&self, claim: &Claim, trail: &mut Asked, until: Instant) -> Result<(), BackendError> {
        self.0.turn(claim, trail, until).await
    }

    async fn renew(
        &self,
        claim: &Claim,
        trail: &mut Asked,
        patience: Instant,
    ) -> Result<Renewal, BackendError> {
        self.0.renew(claim, trail, patience).await
    }

    async fn release(
        &self,
        claim: &Claim,
        trail: &mut Asked,
        patience: Instant,
    ) -> Result<Released, BackendError> {
        self.0.release(claim, trail, patience).await
    }
}
