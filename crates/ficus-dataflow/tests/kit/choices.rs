//! All sequences of decisions, one run each: a run asks `below` wherever something could go one way or another.

/// The decisions of one run; `next_run` goes on to the next sequence that was not tried.
#[derive(Debug, Default)]
pub struct Choices {
    /// What was decided, and among how many.
    taken: Vec<(usize, usize)>,
    position: usize,
}

impl Choices {
    /// Decides for one of `bound` ways, from 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "a decision between nothing");
        if self.position == self.taken.len() {
            self.taken.push((0, bound));
        }
        let (choice, expected) = self.taken[self.position];
        assert_eq!(bound, expected, "a run depends on something other than its decisions");
        self.position += 1;
        choice
    }

    /// Whether there is another sequence; starts its run.
    pub fn next_run(&mut self) -> bool {
        self.taken.truncate(self.position);
        self.position = 0;
        while let Some((choice, bound)) = self.taken.pop() {
            if choice + 1 < bound {
                self.taken.push((choice + 1, bound));
                return true;
            }
        }
        false
    }

    /// The decisions so far, to repeat a run by hand.
    pub fn text(&self) -> String {
        self.taken[..self.position].iter().map(|(choice, _)| choice.to_string()).collect()
    }
}
