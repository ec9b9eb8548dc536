//! A run that is going on: transaction after transaction, and what happens between them.
//!
//! ```text
//! one client      begin -> performed at once, or many updates in a row -> next
//! several         begin -> statements by the schedule ~~ others' -> end
//! ```

use crate::executor::{Database, LOCK_WAIT_INTERVAL_S, SessionId, StatementError, TableId};
use crate::profile::{Monitor, ProfileError, load};
use crate::run::ahead::Ahead;
use crate::run::background::{BackgroundProcesses, Due};
use crate::run::clients::Clients;
use crate::run::elsewhere::Elsewhere;
use crate::run::end_locks::Moment;
use crate::run::events::{Events, Plan};
use crate::run::machine::Asked;
use crate::run::perform::perform;
use crate::run::schedule::{Schedule, Turn};
use crate::run::{Outcome, Turns, outcome};
use crate::workload::{End, Operation, Workload};

/// Short transactions that the monitor is told of together.
const TOLD_AT_ONCE: u64 = 256;
/// Those of several clients, of whatever length.
const FEW_TOLD_AT_ONCE: u64 = 8;

/// Transactions from which on it is asked whether memory should be gathered: a shorter run is over
/// in no time.
const LEAST_TO_GATHER: u64 = 1 << 19;

/// Multiples of the golden section, modulo 1, lie evenly between 0 and 1 however many they are.
const EVENLY: f64 = 0.618_033_988_749_894_9;

/// A run between its first transaction and its outcome.
#[derive(Debug)]
pub(super) struct Running<'a, W> {
    db: &'a mut Database,
    workload: &'a mut W,
    names: &'a [String],
    plan: &'a Plan,
    monitor: &'a Monitor,
    background: Option<BackgroundProcesses>,
    /// What happens from outside has a session of its own.
    outsider: SessionId,
    schedule: Schedule,
    events: Events<'a>,
    /// When somebody tries again to lock the end of a table: a VACUUM of those from outside, or
    /// autovacuum, with what else was due by the clock then.
    tries_at: f64,
    put_off: Option<(f64, Due)>,
    put_off_before: u32,
    ahead: Ahead,
    clients: Clients,
    elsewhere: Option<Elsewhere<W>>,
    /// Ended, and the monitor does not know it yet.
    untold: u64,
    gathers_at: u64,
    transactions: u64,
    statements: u64,
    rewritten: usize,
    /// How often rows were put elsewhere.
    moved: usize,
    /// By the number of an operation: turns in which it found no row.
    without_row: Vec<u64>,
}

impl<'a, W: Workload> Running<'a, W> {
    /// Opens the clients' sessions.
    pub fn new(
        db: &'a mut Database,
        workload: &'a mut W,
        names: &'a [String],
        plan: &'a Plan,
        (background, monitor): (Option<BackgroundProcesses>, &'a Monitor),
    ) -> Self {
        let schedule = Schedule::new(
            workload.clients(),
            plan.interleaving,
            Asked {
                rate_per_s: plan.rate_per_s,
                standing: plan.standing.clone(),
                machine: plan.machine,
                at_work: plan.at_work,
            },
        )
        .of_calls(workload.is_one_call())
        .along(&plan.course)
        .at(plan.per_s);
        let ahead = Ahead::new(workload);
        let elsewhere = plan.whole.as_ref().map(|whole| {
            Elsewhere::new(whole, workload, plan.transactions_each, plan.interleaving)
        });
        let shared = plan.whole.as_ref().map_or(&[][..], |whole| &whole.tables);
        let is_alone = schedule.is_alone();
        let outsider = SessionId(if is_alone { 0 } else { workload.clients() });
        db.open_sessions(outsider.0 + 1);
        if !is_alone {
            for client in 0..workload.clients() {
                db.switch_to(SessionId(client));
                db.set_isolation(plan.isolation);
            }
            db.share_pending_lists(schedule.misses_page());
            db.scan_in_parts();
            db.ask_on_arrival();
            if plan.whole.is_none() {
                db.contend_for_extensions(schedule.extensions(plan.interleaving));
            }
        }
        Self {
            clients: Clients::new(workload.clients(), shared, workload.is_one_call()),
            without_row: vec![0; workload.turns().len()],
            db,
            workload,
            names,
            plan,
            monitor,
            background,
            outsider,
            events: Events::new(plan),
            schedule,
            tries_at: f64::INFINITY,
            put_off: None,
            put_off_before: 0,
            ahead,
            elsewhere,
            untold: 0,
            gathers_at: LEAST_TO_GATHER,
            transactions: 0,
            statements: 0,
            rewritten: 0,
            moved: 0,
        }
    }

    /// Carries out everything, and sums it up.
    pub fn finish(mut self) -> Result<Outcome, ProfileError> {
        while let Some(turn) = self.schedule.next() {
            if self.tries_at <= self.schedule.now() {
                self.try_locks(self.schedule.now())?;
            }
            self.db.begin_turn(self.schedule.now());
            match turn {
                Turn::Begin(client) => self.begin(client)?,
                within => self.go_on(within)?,
            }
        }
        assert!(
            !self.clients.are_busy(),
            "clients wait for each other for ever"
        );
        self.workload.give_back(self.ahead.waiting());
        self.db.switch_to(self.outsider);
        self.db.end_extensions();
        self.monitor.advance(self.untold)?;
        self.try_locks(f64::INFINITY)?;
        let moment = self.moment();
        let ended = self.events.happen(self.plan.transactions, moment, self.db);
        ended.map_err(|failed| self.failure(failed))?;
        let background = self.background.take();
        let happened = background.map(|background| background.end(self.db));
        let happened = happened
            .transpose()
            .map_err(|failed| self.failure(failed))?;
        self.db.settle_images();
        let turns = self.workload.turns().iter().zip(self.without_row);
        let turns = turns.map(|(&turns, without_row)| Turns { turns, without_row });
        Ok(Outcome {
            happened,
            turns: turns.collect(),
            failed_transactions: self.clients.failed(),
            worked: self.schedule.worked(),
            pauses: self.schedule.pauses(),
            rewrites: self.events.rewritten().to_vec(),
            ..outcome(self.db, self.names, self.transactions, self.statements)
        })
    }

    /// Those who wait for the lock on a table's end try again whose time has come.
    #[cold]
    fn try_locks(&mut self, now: f64) -> Result<(), ProfileError> {
        self.db.switch_to(self.outsider);
        let tried = self.events.try_again(now, self.db);
        tried.map_err(|failed| self.failure(failed))?;
        let due = self.put_off.take_if(|&mut (at, _)| at <= now);
        if let (Some((_, due)), Some(background)) = (due, &mut self.background) {
            let happened = background.happen_late(due, self.db);
            happened.map_err(|failed| self.failure(failed))?;
        }
        self.note_tries();
        Ok(())
    }

    fn moment(&self) -> Moment {
        Moment {
            now: self.schedule.now(),
            to_next_try: self.schedule.of_seconds(LOCK_WAIT_INTERVAL_S),
        }
    }

    fn note_tries(&mut self) {
        let put_off = self.put_off.as_ref().map_or(f64::INFINITY, |&(at, _)| at);
        self.tries_at = self.events.tries_at().min(put_off);
    }

    /// A turn within a transaction of one of several clients.
    fn go_on(&mut self, turn: Turn) -> Result<(), ProfileError> {
        let ended = self.clients.go_on(turn, &mut self.schedule, self.db);
        let ended = ended.map_err(|failed| self.failure(failed))?;
        for number in self.clients.take_without_row() {
            if let Some(count) = self.without_row.get_mut(number) {
                *count += 1;
            }
        }
        let Some(ended) = ended else {
            return Ok(());
        };
        if let Some(elsewhere) = &mut self.elsewhere {
            if ended.is_elsewhere {
                elsewhere.skip(&self.schedule, self.db.procs().oldest_xmin());
                return self.monitor.advance(u64::from(elsewhere.goes_on()));
            }
            elsewhere.played(ended.xid);
        }
        if let Some(background) = &mut self.background {
            background.end_transaction(ended.client, self.db);
        }
        self.untold += 1;
        if self.untold >= FEW_TOLD_AT_ONCE {
            self.monitor.advance(std::mem::take(&mut self.untold))?;
        }
        Ok(())
    }

    /// A client's next transaction, if it may begin now.
    #[inline]
    fn begin(&mut self, client: usize) -> Result<(), ProfileError> {
        let is_over = self.transactions == self.plan.transactions;
        if !is_over && self.clients.are_busy() && self.events.needs_quiet(self.transactions) {
            self.clients.postpone(client);
            return Ok(());
        }
        if self.begins_elsewhere(client, is_over)? || is_over {
            return Ok(());
        }
        let left = self.plan.transactions - self.transactions;
        let Some(end) = self.ahead.next(self.workload, client, left, self.db) else {
            return Ok(());
        };
        self.let_happen()?;
        self.ahead.prefetch_page(self.db);
        if self.transactions == self.gathers_at {
            self.db.gather_memory(self.transactions);
            self.gathers_at *= 2;
        }
        if self.schedule.is_alone() && self.ahead.update_alone(self.db) {
            return self.update_on(client, left);
        }
        self.ahead.expect_leaves(self.db);
        self.transactions += 1;
        self.db.note_moment(self.transactions);
        self.statements += self.ahead.operations().len() as u64;
        if self.schedule.is_alone() {
            return self.perform(client, end);
        }
        if self.elsewhere.is_none()
            && let Some(table) = self.ahead.begin_update_alone(client, self.db)
        {
            self.clients
                .begin_update_alone(client, table, &mut self.schedule, self.db);
            return Ok(());
        }
        let operations = self.ahead.operations_mut();
        let begun = self.clients.begin(
            client,
            operations,
            (end, false),
            &mut self.schedule,
            self.db,
        );
        begun.map_err(|failed| self.failure(failed))
    }

    /// Whether the client's turn is of what takes place beside a sample.
    fn begins_elsewhere(&mut self, client: usize, is_over: bool) -> Result<bool, ProfileError> {
        let Some(elsewhere) = &mut self.elsewhere else {
            return Ok(false);
        };
        if is_over && !elsewhere.goes_on() {
            return Ok(true);
        }
        if !elsewhere.is_next(client) {
            return Ok(false);
        }
        let (operations, end) = elsewhere.next_transaction(client);
        let begun =
            self.clients
                .begin(client, operations, (end, true), &mut self.schedule, self.db);
        begun.map_err(|failed| self.failure(failed))?;
        Ok(true)
    }

    /// What is due before the next transaction: by its number, and by the clock.
    #[inline]
    fn let_happen(&mut self) -> Result<(), ProfileError> {
        let background = self.background.as_mut();
        let due = background.and_then(|background| background.begin_transaction());
        let due = due.and_then(|due| self.put_off(due));
        let is_quiet = due.is_none() && self.events.quiet_until() > self.transactions;
        if !self.schedule.is_alone() && !is_quiet {
            self.db.switch_to(self.outsider);
        }
        if let (Some(background), Some(due)) = (&mut self.background, due) {
            let happened = background.happen(due, self.db);
            happened.map_err(|failed| self.failure(failed))?;
        }
        if self.events.quiet_until() > self.transactions {
            return Ok(());
        }
        let moment = self.moment();
        let so_far = self.events.happen(self.transactions, moment, self.db);
        let so_far = so_far.map_err(|failed| self.failure(failed))?;
        self.note_tries();
        if so_far > self.moved {
            let rewritten = self.events.rewritten();
            if let Some(background) = &mut self.background {
                background.rewritten(&rewritten[self.rewritten..], self.db);
            }
            self.rewritten = rewritten.len();
            self.moved = so_far;
            self.ahead.forget_targets();
        }
        Ok(())
    }

    /// What is due by the clock; nothing while a worker waits for the lock on a table's end, which
    /// the client that is about to begin cannot have: then that happens in the midst of its turn.
    #[cold]
    fn put_off(&mut self, due: Due) -> Option<Due> {
        let background = self.background.as_mut()?;
        if self.schedule.is_alone() || !background.waits_for_lock() {
            return Some(due);
        }
        background.put_off();
        if self.put_off.is_none() {
            self.put_off_before += 1;
            let place = (EVENLY * f64::from(self.put_off_before)).fract();
            self.put_off = Some((self.schedule.within_a_turn(place), due));
            self.note_tries();
        }
        None
    }

    /// The only client's update was done where its row lies, and so are those after it that can be,
    /// until something else is due.
    #[inline]
    fn update_on(&mut self, client: usize, left: u64) -> Result<(), ProfileError> {
        let mut done = 1;
        if let Some(background) = &mut self.background {
            background.end_transaction(client, self.db);
        } else {
            let quiet = self.events.quiet_until().min(self.gathers_at);
            let quiet = quiet.min(self.plan.transactions);
            let most = quiet
                .saturating_sub(self.transactions + 1)
                .min(TOLD_AT_ONCE);
            done += self
                .ahead
                .update_on(self.workload, (most, left - 1), self.db);
        }
        self.transactions += done;
        self.statements += done;
        self.schedule.go_on();
        self.untold += done;
        if self.untold >= TOLD_AT_ONCE {
            self.monitor.advance(std::mem::take(&mut self.untold))?;
        }
        Ok(())
    }

    /// The only client's transaction, from its first statement to its end.
    fn perform(&mut self, client: usize, end: End) -> Result<(), ProfileError> {
        for operation in self.ahead.operations() {
            let found = perform(self.db, operation)
                .map_err(|error| self.failure((error, operation.table())))?;
            if let (0, Operation::Find { number, .. } | Operation::Head { number, .. }) =
                (found, operation)
                && let Some(count) = self.without_row.get_mut(*number)
            {
                *count += 1;
            }
        }
        match end {
            End::Statement | End::Commit => self.db.commit(),
            End::Rollback => self.db.rollback(),
        };
        self.schedule.go_on();
        if let Some(background) = &mut self.background {
            background.end_transaction(client, self.db);
        }
        let told = std::mem::take(&mut self.untold) + 1;
        self.monitor.advance(told)
    }

    fn failure(&self, (error, table): (StatementError, TableId)) -> ProfileError {
        let name = &self.names[table.0];
        load::failure(&error, self.transactions, name, name)
    }
}
