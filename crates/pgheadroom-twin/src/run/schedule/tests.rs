//! Who comes when.

use super::*;
use crate::profile::MachineSpec;
use crate::run::standing::Standing;
use crate::run::work::STATEMENT;

/// At a rate clients take turns, as long as none is late.
#[test]
fn a_throttle_makes_clients_take_turns() {
    let mut schedule = Schedule::new(
        4,
        3,
        Asked {
            rate_per_s: Some(1000.0),
            ..Asked::default()
        },
    );
    let turns: Vec<_> = std::iter::from_fn(|| schedule.next()).collect();
    assert_eq!(turns, [0, 1, 2, 3].map(Turn::Begin));
}

/// The same seed gives the same order, and another one another.
#[test]
fn seeds_decide_the_order() {
    let order = |seed| {
        let mut schedule = Schedule::new(20, seed, Asked::default());
        std::iter::from_fn(|| schedule.next()).collect::<Vec<_>>()
    };
    assert_eq!(order(3), order(3));
    assert_ne!(order(3), order(4));
    assert_eq!(order(3).len(), 20);
}

/// Of those who wait for each other the first one's timer finds it out, unless that has gone
/// off before.
#[test]
fn the_first_timer_finds_a_deadlock() {
    let mut schedule = Schedule::new(2, 1, Asked::default());
    while schedule.next().is_some() {}
    schedule.wait(1, false);
    let began = schedule.now;
    schedule.now = began + 10.0;
    schedule.wait(0, false);
    schedule.expect_deadlock(&[1, 0]);
    assert_eq!(schedule.next(), Some(Turn::Deadlock(1, 1)));
    assert!(schedule.is_wait(1, 1) && schedule.now > began + 1000.0);
    schedule.wait(0, false);
    schedule.now += 1.0;
    schedule.expect_deadlock(&[1, 0]);
    assert_eq!(schedule.next(), Some(Turn::Deadlock(0, 2)));
    assert!(!schedule.is_wait(0, 1));
}

/// A client is away between two calls for as long as calls take, not statements.
#[test]
fn calls_are_waited_for() {
    for (has_calls, least, most) in [(false, 0.0, 0.3), (true, 0.4, 0.65)] {
        let mut schedule = Schedule::new(4, 1, Asked::default()).of_calls(has_calls);
        schedule.machine.shared = Shared::None; // these statements have no pauses
        let (mut left, mut away, mut since) = ([0; 4], 0.0, [0.0; 4]);
        while let Some(turn) = schedule.next() {
            match turn {
                Turn::Begin(client) if schedule.ended < 4000.0 => {
                    away += schedule.now - since[client];
                    left[client] = 30;
                    schedule.run_statement(client, Work::UPDATE_ALONE);
                }
                Turn::EndStatement(client) => {
                    left[client] -= 1;
                    if left[client] == 0 {
                        since[client] = schedule.now;
                        schedule.end_transaction(client, false);
                    } else {
                        schedule.run_statement(client, Work::UPDATE_ALONE);
                    }
                }
                _ => {}
            }
        }
        let share = away / (4.0 * schedule.now);
        assert!(least < share && share < most, "{has_calls}: {share}");
    }
}

/// A ROLLBACK behind an error is a way of its own, and pauses within a transaction are shorter
/// than those between two.
#[test]
fn a_rollback_takes_its_time() {
    for seed in 0..8 {
        let mut schedule = Schedule::new(2, seed, Asked::default());
        (schedule.standing, schedule.machine.shared) = (None, Shared::None);
        let Machine { between, pause, .. } = schedule.machine;
        assert!(pause * 1.2 <= between * 1.001 && between <= pause * 2.801);
        while schedule.next().is_some() {}
        let mut mean_until_next = |rolls_back| {
            let mut sum = 0.0;
            for _ in 0..20_000 {
                let ended = schedule.now;
                schedule.end_transaction(0, rolls_back);
                assert_eq!(schedule.next(), Some(Turn::Begin(0)));
                sum += schedule.now - ended;
            }
            sum / 20_000.0 / schedule.machine.pauses[0]
        };
        let (commits, rolls_back) = (mean_until_next(false), mean_until_next(true));
        let way = (rolls_back - commits) / pause;
        assert!((0.8..1.2).contains(&way), "{seed}: {way}");
    }
}

/// Pauses within a transaction have the machine's mean, and are the more even the quieter it
/// is.
#[test]
fn quiet_machines_are_even() {
    for seed in 0..8 {
        let mut schedule = Schedule::new(2, seed, Asked::default());
        let drawn: Vec<_> = (0..20_000).map(|_| schedule.draw_even(3.0)).collect();
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let variance = drawn.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / 20_000.0;
        let shape = f64::from(schedule.machine.shape);
        assert!((mean / 3.0 - 1.0).abs() < 0.05, "{seed}: {mean}");
        assert!(
            (variance * shape / 9.0 - 1.0).abs() < 0.15,
            "{seed}: {variance}"
        );
        let is_quiet = schedule.machine.between < 2.0;
        assert!(!is_quiet || shape >= 5.0, "{seed}: {shape}");
    }
}

/// What was measured is met in the mean: how many stand still, and how far others come.
#[test]
fn clients_stand_still_as_measured() {
    let standing = Standing {
        share: 0.002,
        lengths: vec![10.0, 90.0],
        inside: None,
    };
    let mut schedule = Schedule::new(
        4,
        1,
        Asked {
            standing: Some(standing),
            ..Asked::default()
        },
    );
    let (mut long, mut count) = (0, 0);
    let mut ended = [0.0; 4];
    while let Some(turn) = schedule.next() {
        match turn {
            Turn::Begin(client) if count < 400_000 => {
                schedule.run_statement(client, Work::UPDATE_ALONE);
            }
            Turn::EndStatement(client) => {
                count += 1;
                let all = (schedule.now - ended[client]) * schedule.ended / schedule.now;
                long += u32::from(all > 4.0 * 50.0);
                ended[client] = schedule.now;
                schedule.end_transaction(client, false);
            }
            _ => {}
        }
    }
    // Each length is as likely.
    let (expected, found) = (400_000.0 * 0.002 * 0.5, f64::from(long));
    assert!(found > 0.8 * expected && found < 1.2 * expected, "{found}");
}

/// Clients without any pause go on all the same, along a course too.
#[test]
fn who_never_pauses_comes_on() {
    let machine = MachineSpec {
        pause_us: Some(0.0),
        between_us: Some(0.0),
        ..MachineSpec::default()
    };
    let asked = Asked {
        machine,
        ..Asked::default()
    };
    let mut schedule = Schedule::new(2, 3, asked).along(&[vec![300, 700], vec![700, 300]]);
    let (mut done, mut last) = (0, 0.0);
    while let Some(turn) = schedule.next() {
        assert!(schedule.now >= last && schedule.now.is_finite());
        last = schedule.now;
        match turn {
            Turn::Begin(client) if done < 2000 => {
                schedule.run_statement(client, Work::UPDATE_ALONE);
            }
            Turn::EndStatement(client) => {
                done += 1;
                schedule.end_transaction(client, false);
            }
            _ => {}
        }
    }
    assert!(done >= 2000 && last > 500.0, "{done} {last}");
}

/// Behind the last stretch pauses are as long as the machine has them.
#[test]
#[allow(clippy::cast_precision_loss)] // few
fn a_course_that_is_over_cuts_no_pause() {
    let mean = |over: bool| {
        let mut schedule = Schedule::new(2, 3, Asked::default()).along(&[vec![2, 2], vec![8, 8]]);
        for _ in 0..if over { 20 } else { 10 } {
            schedule.now += 0.5;
            schedule.end_transaction(0, false);
        }
        let drawn = (0..1000).map(|_| schedule.draw_pause(100.0));
        drawn.sum::<f64>() / 1000.0
    };
    assert!(mean(false) < 6.0, "until the stretch ends");
    assert!(mean(true) > 80.0);
}

/// Whatever the machine, a client is where the server's was when a stretch ends, within a few
/// transactions; also one that stands still while the others go on.
#[test]
fn clients_keep_to_their_course() {
    let stretches = [[300, 100, 50, 350], [100, 300, 400, 0], [0, 400, 350, 50]];
    let course = stretches.map(|stretch| stretch.to_vec());
    for seed in 0..8 {
        let mut schedule = Schedule::new(4, seed, Asked::default()).along(&course);
        let mut done = [0_u32; 4];
        let mut goals = [0_u32; 4];
        let mut next_end = 0;
        let mut ends = stretches.iter();
        while let Some(turn) = schedule.next() {
            match turn {
                Turn::Begin(client) if done.iter().sum::<u32>() < 2400 => {
                    schedule.run_statement(client, Work::UPDATE_ALONE);
                }
                Turn::EndStatement(client) => {
                    done[client] += 1;
                    schedule.end_transaction(client, false);
                }
                _ => {}
            }
            if done.iter().sum::<u32>() == next_end {
                for (client, &goal) in goals.iter().enumerate() {
                    assert!(
                        done[client].abs_diff(goal) < 40,
                        "{seed}: {done:?} {goals:?}"
                    );
                }
                let Some(stretch) = ends.next() else { break };
                for (goal, count) in goals.iter_mut().zip(stretch) {
                    *goal += count;
                }
                next_end = goals.iter().sum();
            }
        }
        assert_eq!(next_end, 2400, "{seed}");
    }
}

/// Who has a row's holder end before it comes to the row itself goes on when it comes there, and
/// who waits goes on when it has been woken.
#[test]
fn who_comes_later_has_not_waited() {
    for seed in 0..8 {
        let mut schedule = Schedule::new(2, seed, Asked::default());
        schedule.standing = None;
        while schedule.next().is_some() {}
        let (mut came, mut waited) = (0, 0);
        for _ in 0..1000 {
            let began = schedule.now;
            schedule.wait(1, true);
            let reaches_at = schedule.clients[1].reaches_at;
            schedule.now = began + 0.2;
            schedule.wake(1, 0.0);
            assert!(matches!(schedule.next(), Some(Turn::GoOn(1, _))));
            if reaches_at > began + 0.2 {
                came += 1;
                assert!((schedule.now - reaches_at).abs() < 1e-9);
            } else {
                waited += 1;
                assert!(schedule.now >= began + 0.2);
            }
        }
        assert!(came > 100 && waited > 100, "{came} {waited}");
    }
}

/// Which processors four clients share on the machine of a seed, and how many of their statements
/// run at a time at most.
fn at_once(seed: u64, processors: Option<u32>, at_work: Option<f64>) -> (Shared, usize) {
    let machine = MachineSpec {
        processors,
        ..MachineSpec::default()
    };
    let asked = Asked {
        machine,
        at_work,
        ..Asked::default()
    };
    let mut schedule = Schedule::new(4, seed, asked);
    schedule.standing = None;
    schedule.machine.processor.loses = f64::MIN_POSITIVE; // none stops in the middle
    let (mut at_once, mut most) = (0, 0);
    while let Some(turn) = schedule.next() {
        match turn {
            Turn::Begin(client) if schedule.ended < 2000.0 => {
                at_once += 1;
                schedule.run_statement(client, Work::UPDATE_ALONE);
            }
            Turn::EndStatement(client) => {
                at_once -= 1;
                schedule.end_transaction(client, false);
            }
            _ => {}
        }
        most = most.max(at_once);
    }
    (schedule.machine.shared, most)
}

/// On one processor no statement begins before the one before it has ended, on so many no more run
/// at a time; where each backend has one, as where there are at least as many, they all may.
#[test]
fn so_many_processors_run_so_many_statements() {
    let kinds = |processors: Option<u32>, at_work: Option<f64>| {
        let mut kinds = [0; 4];
        for seed in 0..8 {
            let (shared, most) = at_once(seed, processors, at_work);
            let (kind, holds) = match shared {
                Shared::None => (0, most > 2),
                Shared::One => (1, most == 1),
                Shared::InStep(count) => (2, most > 1 && most <= count),
                Shared::WithClients(count) => (3, most == count),
            };
            kinds[kind] += 1;
            assert!(holds, "{seed}, {processors:?}: {most}, {shared:?}");
        }
        kinds
    };
    assert_eq!(kinds(None, None), [2, 4, 2, 0]);
    assert_eq!(kinds(Some(1), None), [0, 0, 0, 8]);
    assert_eq!(kinds(Some(2), Some(0.3)), [0, 4, 2, 2]);
    assert_eq!(kinds(Some(4), None), [2, 4, 2, 0]);
    // Where more are at work at a time than there are, none waits for one.
    assert_eq!(kinds(Some(2), Some(1.5)), [4, 0, 2, 2]);
    assert_eq!(kinds(Some(2), Some(2.5)), [8, 0, 0, 0]);
}

/// Who had to wait until nobody was in a transaction goes on when it is woken, not all at once.
#[test]
fn who_was_kept_out_is_woken() {
    for seed in 0..8 {
        let mut schedule = Schedule::new(4, seed, Asked::default());
        schedule.standing = None;
        while schedule.next().is_some() {}
        let from = schedule.now;
        (0..4).for_each(|client| schedule.begin_woken(client));
        let mut times = Vec::new();
        while schedule.next().is_some() {
            times.push(schedule.now);
        }
        assert!(times[0] > from && times.windows(2).all(|two| two[0] < two[1]));
    }
}

/// What a session is at work for before its snapshot and behind its COMMIT is part of its pauses.
#[test]
fn time_at_work_is_longer_than_a_snapshot() {
    for seed in 0..8 {
        let mut schedule = Schedule::new(1, seed, Asked::default());
        (schedule.standing, schedule.machine.shared) = (None, Shared::None);
        schedule.machine.processor.loses = f64::MIN_POSITIVE;
        while schedule.next().is_some() {}
        let (mut inside, mut pauses) = (0.0, f64::INFINITY);
        for _ in 0..20_000 {
            let began = schedule.now;
            schedule.run_statement(0, Work::UPDATE_ALONE);
            schedule.next();
            inside += schedule.now - began;
            let ended = schedule.now;
            schedule.begin_after(0.0, 0.0, 0);
            schedule.next();
            pauses = pauses.min(schedule.now - ended);
        }
        let mean = inside / 20_000.0;
        let outside = BEFORE + AFTER;
        assert!((mean - (1.0 - outside)).abs() < 0.03, "{mean}");
        assert!((pauses - outside).abs() < 1e-9, "{pauses}");
        assert!((schedule.worked() * STATEMENT - 20_000.0).abs() < 1e-6);
    }
}

/// At a rate too what a session is at work for beside its statements does not add up from one
/// transaction to the next.
#[test]
fn a_rate_leaves_nothing_to_make_up_for() {
    let asked = Asked {
        rate_per_s: Some(1000.0),
        ..Asked::default()
    };
    let mut schedule = Schedule::new(2, 1, asked);
    while let Some(turn) = schedule.next() {
        match turn {
            Turn::Begin(client) if schedule.ended < 200.0 => {
                schedule.run_statement(client, Work::UPDATE_ALONE);
            }
            Turn::EndStatement(client) => {
                schedule.end_transaction(client, false);
                assert!(schedule.clients[client].outside < 1e-9);
            }
            _ => {}
        }
    }
}
