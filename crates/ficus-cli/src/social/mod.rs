//! A social network like that of the LDBC Social Network Benchmark, in the files of its generator (Interactive v1, serializer "composite merge foreign",
//! dates in milliseconds), which `docs/examples/mappings/snb.toml` loads. Of our own: names, texts and who knows whom are made here, from a seed.
//!
//! ```text
//!   world.rs    places, organisations, tags and their classes: the same for every scale
//!   people.rs   persons with interests, studies and work
//!   friends.rs  who knows whom
//!   forums.rs   walls, albums, groups; posts, comments, likes
//! ```
//!
//! Persons and friendships are kept in memory, all else is written as it is made. Every entity has random numbers of its own, so the same seed
//! gives the same bytes. Counts follow the networks of the SNB generator, scale 0.1 to 1; the tests hold them to that.

mod forums;
mod friends;
mod people;
mod random;
mod table;
#[cfg(test)]
mod tests;
mod words;
mod world;

use std::io;
use std::path::Path;

use self::forums::Forums;
use self::friends::Friends;
use self::people::People;
use self::random::Random;
use self::world::World;

/// Scale factors and the persons they have; between them, as the straight line between logarithms, and so on behind the last.
const PERSONS: [(f64, f64); 4] = [(0.003, 222.0), (0.1, 1528.0), (0.3, 3514.0), (1.0, 9892.0)];

/// Growth behind the last.
const PERSONS_GROWTH: f64 = 0.82;

/// The fewest persons that are a network.
const PERSONS_MIN: f64 = 10.0;

/// The time that is simulated, in milliseconds since 1970.
#[derive(Clone, Copy)]
struct Period {
    begin: u64,
    end: u64,
}

/// 2010-01-01 to 2012-09-13, the part that the benchmark loads before its updates.
const PERIOD: Period = Period { begin: 1_262_304_000_000, end: 1_347_529_000_000 };

/// What random numbers are for.
#[derive(Clone, Copy)]
enum Kind {
    Joins = 1,
    Person,
    Degree,
    Line,
    Seeks,
    Friendship,
    Forum,
}

impl Kind {
    /// The random numbers of an entity.
    fn random(self, seed: u64, number: usize) -> Random {
        Random::of(seed, self as u64, number as u64)
    }
}

/// An id that grows with time, as those of the benchmark do: months since the begin above `bits` bits of a number that no other has.
fn id(moment: u64, period: Period, number: u64, bits: u32) -> u64 {
    const MONTH_MS: u64 = 2_629_800_000;
    (((moment - period.begin) / MONTH_MS) << bits) | number
}

/// The persons of a scale factor.
fn person_count(scale: f64) -> usize {
    let exponent = |from: (f64, f64), to: (f64, f64)| (to.1 / from.1).ln() / (to.0 / from.0).ln();
    let between = PERSONS.windows(2).find(|pair| scale <= pair[1].0).map(|pair| (pair[1], exponent(pair[0], pair[1])));
    let ((at, persons), growth) = between.unwrap_or((PERSONS[PERSONS.len() - 1], PERSONS_GROWTH));
    (persons * (scale / at).powf(growth)).round().max(PERSONS_MIN) as usize
}

/// Writes the network of a scale factor and a seed into a folder; says the files and their rows.
pub fn generate(scale: f64, seed: u64, folder: &Path) -> io::Result<Vec<(&'static str, u64)>> {
    std::fs::create_dir_all(folder)?;
    let world = World::new();
    let mut rows = world.write(folder)?;
    let (people, written) = People::write(folder, &world, seed, PERIOD, person_count(scale))?;
    rows.extend(written);
    let (friends, written) = Friends::write(folder, &people, seed, PERIOD)?;
    rows.push(written);
    let mut forums = Forums::create(folder, &world, &people, &friends, seed, PERIOD)?;
    for person in 0..people.all.len() {
        forums.write(person)?;
    }
    rows.extend(forums.finish()?);
    Ok(rows)
}
