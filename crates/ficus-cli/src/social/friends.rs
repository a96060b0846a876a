//! Friendships: degrees that follow a power law, and friends who have something in common.
//!
//! A person has a number of friends in mind, drawn from a Lomax distribution (shape 2.5), whose mean grows with the number of persons as it does in the
//! networks of the SNB generator: 18 of 1,528 and 36 of 9,892. Of these, 45 of 100 are sought among those who studied at the same place and time, 45 among those with
//! the same main interest, and the rest anywhere: persons are laid in a line by what they have in common, and look for friends close behind them who
//! want some too. So near ones are likely to be friends, and friends of friends.
//! Source of the idea of lines and windows: Pham, Boncz, Erling, "S3G2: A Scalable Structure-Correlated Social Graph Generator", TPCTC 2012.

use std::io;
use std::path::Path;

use super::people::{People, Person};
use super::table::Table;
use super::{Kind, Period};

/// Friends at 1,528 persons on average, and how it grows.
const MEAN_AT: (f64, f64) = (18.3, 1528.0);
const MEAN_GROWTH: f64 = 0.355;

/// Shape of the distribution of friends, and the most there are for each on average.
const SHAPE: f64 = 2.5;
const DEGREE_MAX: f64 = 25.0;

/// Of the friends that a person still wants, how many are sought in each line: 45 of 100 by study, 45 by interest, the others twice anywhere.
const SHARES: [f64; 4] = [0.45, 0.45 / 0.55, 1.0, 1.0];

/// Of friends sought by one thing in common, how far away one looks for each, on average.
const REACH: f64 = 2.0;

/// More are sought than found, and the cap on degrees takes some.
const SEEKERS: f64 = 1.13;

/// Who cannot find as many friends gives up after so many misses, and one more for each that is wanted.
const TRIES: u32 = 16;

/// The friendships: of every person the friends with the moment.
pub struct Friends {
    first: Vec<usize>,
    all: Vec<(u32, u64)>,
}

impl Friends {
    /// The friends of a person and when they became so, by the friend's number.
    pub fn of(&self, person: usize) -> &[(u32, u64)] {
        &self.all[self.first[person]..self.first[person + 1]]
    }

    /// Makes and writes the friendships.
    pub fn write(
        folder: &Path,
        people: &People,
        seed: u64,
        period: Period,
    ) -> io::Result<(Friends, (&'static str, u64))> {
        let pairs = pairs(&people.all, seed);
        let mut table = Table::create(folder, "person_knows_person", "Person.id|Person.id|creationDate")?;
        let mut first = vec![0; people.all.len() + 1];
        for (one, other) in &pairs {
            first[*one as usize + 1] += 1;
            first[*other as usize + 1] += 1;
        }
        for person in 0..people.all.len() {
            first[person + 1] += first[person];
        }
        let mut next = first.clone();
        let mut all = vec![(0, 0); 2 * pairs.len()];
        for (number, (one, other)) in pairs.iter().enumerate() {
            let (a, b) = (&people.all[*one as usize], &people.all[*other as usize]);
            let moment = Kind::Friendship.random(seed, number).between(a.created.max(b.created) + 1, period.end);
            table.row(format_args!("{}|{}|{moment}", a.id, b.id))?;
            for (person, friend) in [(*one, *other), (*other, *one)] {
                all[next[person as usize]] = (friend, moment);
                next[person as usize] += 1;
            }
        }
        Ok((Friends { first, all }, table.finish()?))
    }
}

/// Pairs of friends, the lower number first, ascending.
fn pairs(persons: &[Person], seed: u64) -> Vec<(u32, u32)> {
    let count = persons.len();
    let mean = MEAN_AT.0 * (count as f64 / MEAN_AT.1).powf(MEAN_GROWTH);
    let mut wanted: Vec<u32> = (0..count)
        .map(|person| {
            let lomax = (SHAPE - 1.0) * ((1.0 - Kind::Degree.random(seed, person).unit()).powf(-1.0 / SHAPE) - 1.0);
            ((lomax.min(DEGREE_MAX) * mean * SEEKERS + 0.5) as u32).min(count as u32 / 2)
        })
        .collect();
    let mut friends: Vec<Vec<u32>> = vec![Vec::new(); count];
    for (dimension, share) in (0_u64..).zip(SHARES) {
        let mix = |person: u32| Kind::Line.random(seed ^ dimension << 32, person as usize).next();
        // What is sought here; what is not found goes to the next line.
        let mut here: Vec<u32> = wanted.iter().map(|wanted| (f64::from(*wanted) * share).round() as u32).collect();
        let mut line: Vec<u32> = (0..count as u32).filter(|person| here[*person as usize] > 0).collect();
        line.sort_by_cached_key(|person| {
            let one = &persons[*person as usize];
            let common = match dimension {
                0 => one.studies,
                1 => (one.interest, one.country, 0),
                _ => (0, 0, 0),
            };
            (common, mix(*person))
        });
        for (place, person) in line.iter().enumerate() {
            let person = *person as usize;
            let random = &Kind::Seeks.random(seed ^ dimension << 32, person);
            let (mut misses, tries) = (0, TRIES + here[person]);
            while here[person] > 0 && misses < tries {
                let reach = f64::from(here[person]) * REACH * f64::from(1 + misses.min(TRIES));
                let distance = 1 + random.exponential(reach) as usize;
                let friend = line.get(place + distance).map_or(person, |friend| *friend as usize);
                if friend == person || here[friend] == 0 || friends[person].contains(&(friend as u32)) {
                    misses += 1;
                    continue;
                }
                for (one, other) in [(person, friend), (friend, person)] {
                    here[one] -= 1;
                    wanted[one] -= 1;
                    friends[one].push(other as u32);
                }
            }
        }
    }
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for (person, mut friends) in (0..).zip(friends) {
        friends.sort_unstable();
        pairs.extend(friends.into_iter().filter(|friend| *friend > person).map(|friend| (person, friend)));
    }
    pairs
}
