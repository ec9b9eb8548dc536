//! How several clients come on, as a server's run had it.
//!
//! ```text
//! stretch      0          1          2            each of as many transactions of all clients
//! client 0:  *****      ********   **             a scheduler favours one for seconds, and then
//! client 1:  ******     ***        *********      another, be it on an idle machine
//! ```
//!
//! Which keys go first decides which pages become empty, so a run in which one client is a third
//! ahead of another leaves other files than an even one. In each stretch a client gets the share
//! of the transactions that it still lacks of its own.

/// Where each client is, and where it is to be when a stretch ends.
#[derive(Debug)]
pub(super) struct Course {
    /// By stretch: how many transactions of each client have ended when it does.
    goals: Vec<Vec<f64>>,
    stretch: usize,
    done: Vec<f64>,
    /// Of all clients: that have ended, and will have when the stretch does.
    ended: f64,
    end: f64,
}

impl Course {
    /// Of the transactions of each client by stretch; `None` without any.
    pub fn new(stretches: &[Vec<u32>]) -> Option<Self> {
        let clients = stretches.first()?.len();
        let mut so_far = vec![0.0; clients];
        let goals: Vec<Vec<f64>> = stretches
            .iter()
            .map(|stretch| {
                for (sum, &count) in so_far.iter_mut().zip(stretch) {
                    *sum += f64::from(count);
                }
                so_far.clone()
            })
            .collect();
        Some(Self {
            end: goals[0].iter().sum(),
            goals,
            stretch: 0,
            done: vec![0.0; clients],
            ended: 0.0,
        })
    }

    /// A transaction of the client has ended.
    pub fn end_transaction(&mut self, client: usize) {
        self.done[client] += 1.0;
        self.ended += 1.0;
        while self.ended >= self.end && self.stretch + 1 < self.goals.len() {
            self.stretch += 1;
            self.end = self.goals[self.stretch].iter().sum();
        }
    }

    /// Transactions until the stretch ends.
    pub fn left(&self) -> f64 {
        self.end - self.ended
    }

    /// Which share of the transactions that come is the client's; `None` behind the last stretch.
    ///
    /// One that is ahead of its goal has less than one of those that are left of the stretch.
    pub fn share(&self, client: usize) -> Option<f64> {
        let left = self.left();
        let own = self.goals[self.stretch][client] - self.done[client];
        (left > 0.0).then(|| own.max(0.5) / left.max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that is ahead of its goal has next to no share, one that is behind the rest.
    #[test]
    fn who_is_behind_gets_what_is_left() {
        let mut course = Course::new(&[vec![2, 8], vec![5, 5]]).expect("two stretches");
        assert_eq!(
            [0, 1].map(|client| course.share(client)),
            [Some(0.2), Some(0.8)]
        );
        for _ in 0..2 {
            course.end_transaction(0);
        }
        assert_eq!(
            [0, 1].map(|client| course.share(client)),
            [Some(0.0625), Some(1.0)]
        );
        for _ in 0..8 {
            course.end_transaction(1);
        }
        assert_eq!(
            [0, 1].map(|client| course.share(client)),
            [Some(0.5), Some(0.5)]
        );
    }

    /// Behind the last stretch nothing is known.
    #[test]
    fn a_course_ends() {
        let mut course = Course::new(&[vec![1, 0]]).expect("a stretch");
        course.end_transaction(0);
        assert_eq!(course.share(0), None);
        assert!(Course::new(&[]).is_none());
    }
}
