//! A measure, and percentiles of many times.

use std::time::Duration;

use serde_json::json;

/// The direction in which a target holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The value should be at least the target.
    AtLeast,
    /// The value should be at most the target.
    AtMost,
}

/// One measured number.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The suite.
    pub suite: &'static str,
    /// What was done.
    pub case: String,
    /// What was measured about it.
    pub metric: &'static str,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// What it should be, where there is an aim.
    pub target: Option<f64>,
    /// How value and target compare when all is well.
    pub direction: Direction,
}

impl Measure {
    /// The measure as programs read it.
    pub fn json(&self) -> serde_json::Value {
        let op = if self.direction == Direction::AtLeast { ">=" } else { "<=" };
        json!({
            "suite": self.suite, "case": self.case, "metric": self.metric, "value": rounded(self.value), "unit": self.unit,
            "target": self.target, "op": op,
        })
    }

    /// The measure as people read it.
    pub fn text(&self) -> String {
        let Measure { case, metric, value, unit, .. } = self;
        let verdict = match (self.target, self.holds()) {
            (Some(target), true) => format!("  (target {target}: met)"),
            (Some(target), false) => format!("  (target {target}: MISSED)"),
            (None, _) => String::new(),
        };
        format!("{case:32} {metric:24} {:>14} {unit}{verdict}", rounded(*value))
    }

    /// Whether the target is met.
    pub fn holds(&self) -> bool {
        match (self.target, self.direction) {
            (None, _) => true,
            (Some(target), Direction::AtLeast) => self.value >= target,
            (Some(target), Direction::AtMost) => self.value <= target,
        }
    }
}

/// Three decimals for small numbers, none for large ones.
fn rounded(value: f64) -> f64 {
    if value.abs() >= 1000.0 { value.round() } else { (value * 1000.0).round() / 1000.0 }
}

/// Times of many repetitions.
#[derive(Debug, Default)]
pub struct Times(Vec<Duration>);

impl FromIterator<Duration> for Times {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Times {
        Times(times.into_iter().collect())
    }
}

impl Times {
    /// Adds one.
    pub fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The time in microseconds that `share` of the repetitions did not exceed.
    pub fn percentile_us(&mut self, share: f64) -> f64 {
        if self.0.is_empty() {
            return 0.0;
        }
        self.0.sort_unstable();
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1].as_secs_f64() * 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_times() {
        let mut times = Times::default();
        for millis in [4, 1, 3, 2] {
            times.add(Duration::from_millis(millis));
        }
        assert_eq!(times.percentile_us(0.5), 2000.0);
        assert_eq!(times.percentile_us(0.99), 4000.0);
        assert_eq!(times.percentile_us(0.0), 1000.0);
    }

    #[test]
    fn measures_say_whether_they_hold() {
        let measure = |value, direction| Measure {
            suite: "wire",
            case: "echo".into(),
            metric: "p50",
            value,
            unit: "us",
            target: Some(10.0),
            direction,
        };
        assert!(measure(9.0, Direction::AtMost).holds());
        assert!(!measure(9.0, Direction::AtLeast).holds());
        let expected = json!({"suite": "wire", "case": "echo", "metric": "p50", "value": 12346.0, "unit": "us", "target": 10.0, "op": "<="});
        assert_eq!(measure(12345.6, Direction::AtMost).json(), expected);
    }
}
