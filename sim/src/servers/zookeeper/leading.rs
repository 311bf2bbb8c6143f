//! The roles of members (leading, following, looking), and the loss and return of contact between them.
//!
//! A member serves while it is in touch: the leader with a majority, a follower with the leader. A member out
//! of touch still answers pings, and reads from the state that it knew, for up to `sync_limit` ticks. Then it
//! closes its connections and looks for a leader. Of the members that look and reach a majority, the one with
//! the highest number becomes the leader in a new epoch, and restarts every session's timeout.

use history::Span;

use super::core::{Core, Now};
use super::member::{Behind, Member, Role};
use super::session;

impl Core {
    /// Returns the member that leads, if one does.
    pub(crate) fn leader(&self) -> Option<usize> {
        let epoch = self.epoch();
        self.members.iter().position(|member| member.role == Role::Leading { epoch })
    }

    /// Starts a member, or restarts it, and returns the number of this life.
    pub(crate) fn start(&mut self, member: usize) -> u64 {
        let life = self.members[member].life + 1;
        self.members[member] = Member { role: Role::Looking, life, ..Member::default() };
        life
    }

    /// Stops a member, unless it has begun another life. The others notice at once, since their connections
    /// to it break.
    pub(crate) fn stop(&mut self, member: usize, life: u64) {
        if self.members[member].life == life {
            self.hang_up_all(member);
            self.members[member] = Member { life, ..Member::default() };
        }
    }

    /// Replaces the leader by the next member that is in touch; every member closes its connections. Returns
    /// the new leader. `now` reads the clocks for a member.
    pub(crate) fn change_leader(&mut self, now: impl Fn(usize) -> Now) -> Option<usize> {
        let (old, size) = (self.leader()?, self.members.len());
        let mut next = (1..size).map(|step| (old + step) % size);
        let new = next.find(|&member| self.members[member].is_in_touch())?;
        self.replace_leader(new, now(new));
        Some(new)
    }

    /// Makes `member` the leader. Returns false if it is not in touch, or leads already.
    pub(crate) fn move_leader(&mut self, member: usize, now: impl Fn(usize) -> Now) -> bool {
        let may_lead = self.members[member].is_in_touch() && self.leader().is_some_and(|old| old != member);
        if may_lead {
            self.replace_leader(member, now(member));
        }
        may_lead
    }

    fn replace_leader(&mut self, new: usize, now: Now) {
        for member in 0..self.members.len() {
            if self.members[member].role != Role::Down {
                self.members[member].role = Role::Looking;
                self.hang_up_all(member);
            }
        }
        self.lead(new, now);
    }

    /// Updates a member's role by the members that it reaches, itself included.
    pub(crate) fn attend(&mut self, member: usize, reaches: &[bool], now: Now) {
        if self.members[member].role == Role::Looking {
            self.look(member, reaches, now);
        }
        if !self.members[member].is_serving() {
            return;
        }
        if self.sees_quorum(member, reaches) {
            self.catch_up(member);
        } else {
            self.fall_behind(member, reaches, now);
        }
    }

    /// Lets a looking member follow a leader that it reaches, or lead if it reaches a majority of looking
    /// members.
    fn look(&mut self, member: usize, reaches: &[bool], now: Now) {
        if let Some(leader) = self.leader().filter(|&leader| reaches[leader]) {
            let in_touch = leader == member || self.members[leader].is_in_touch();
            if in_touch {
                self.members[member].role = Role::Following { epoch: self.epoch() };
                self.catch_up(member);
            }
            return;
        }
        let looks = |&other: &usize| reaches[other] && self.members[other].role == Role::Looking;
        let voters: Vec<usize> = (0..self.members.len()).filter(looks).collect();
        if self.is_majority(voters.len()) && voters.last() == Some(&member) {
            self.lead(member, now);
        }
    }

    fn lead(&mut self, member: usize, now: Now) {
        // A standalone server stays in epoch 0; an ensemble's first epoch is 1.
        if self.members.len() > 1 {
            self.zxid = (self.epoch() + 1) << 32;
        }
        self.members[member].role = Role::Leading { epoch: self.epoch() };
        self.catch_up(member);
        let tick = self.tick;
        for session in self.sessions.values_mut() {
            session.expires_at = session::expiry(now.own, session.timeout, tick);
        }
    }

    fn sees_quorum(&self, member: usize, reaches: &[bool]) -> bool {
        let epoch = self.epoch();
        match self.members[member].role {
            Role::Leading { epoch: own } => {
                own == epoch && self.is_majority(reaches.iter().filter(|reached| **reached).count())
            }
            Role::Following { epoch: own } => {
                let leader = self.leader().filter(|&leader| reaches[leader]);
                own == epoch && leader.is_some_and(|leader| self.members[leader].is_in_touch())
            }
            Role::Looking | Role::Down => false,
        }
    }

    fn catch_up(&mut self, member: usize) {
        self.members[member].out_of_touch_since = None;
        let missed = self.members[member].behind.take().map(|behind| behind.missed);
        missed.into_iter().flatten().for_each(|change| self.show(member, &change));
    }

    fn fall_behind(&mut self, member: usize, reaches: &[bool], now: Now) {
        let sync_timeout = Span(self.tick).as_nanos().saturating_mul(u64::from(self.sync_limit));
        // It notices a broken connection at once: if the leader is down, or leads another epoch.
        let knows = match self.leader() {
            Some(leader) => reaches[leader] && !self.is_of_epoch(member),
            None => matches!(self.members[member].role, Role::Following { .. }) && self.no_leader_but_down(),
        };
        let (tree, zxid) = (&self.tree, self.zxid);
        let state = &mut self.members[member];
        state.behind.get_or_insert_with(|| Behind { tree: tree.clone(), zxid, missed: Vec::new() });
        let since = *state.out_of_touch_since.get_or_insert(now.own);
        if knows || now.own.saturating_sub(since) >= sync_timeout {
            state.role = Role::Looking;
            self.hang_up_all(member);
        }
    }

    fn is_of_epoch(&self, member: usize) -> bool {
        let epoch = self.epoch();
        let role = self.members[member].role;
        role == Role::Following { epoch } || role == Role::Leading { epoch }
    }

    /// Returns true if no live member leads, not even a deposed leader that does not know it yet.
    fn no_leader_but_down(&self) -> bool {
        !self.members.iter().any(|member| matches!(member.role, Role::Leading { .. }))
    }

    fn hang_up_all(&mut self, member: usize) {
        let theirs = self.connections.iter().filter(|(_, connected)| connected.member == member);
        let numbers: Vec<u64> = theirs.map(|(number, _)| *number).collect();
        numbers.into_iter().for_each(|connection| self.close(connection));
    }

    fn is_majority(&self, members: usize) -> bool {
        members * 2 > self.members.len()
    }

    fn epoch(&self) -> i64 {
        self.zxid >> 32
    }
}
