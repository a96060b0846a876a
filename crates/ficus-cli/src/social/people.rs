//! Persons, in the order in which they joined.

use std::io;
use std::path::Path;

use super::random::Random;
use super::table::Table;
use super::words::{BROWSERS, COUNTRIES, FEMALE, LAST, MAIL, MALE};
use super::world::World;
use super::{Kind, Period, id};

const YEAR_MS: u64 = 31_557_600_000;
const DAY_MS: u64 = 86_400_000;

/// The most interests of a person.
const INTERESTS_MAX: f64 = 80.0;

/// Of persons, how many study and how many work somewhere.
const SHARE: f64 = 0.8;

/// Of studies and work, how much is in the own country.
const AT_HOME: f64 = 0.9;

/// Jobs beside the first are fewer than this.
const JOBS_MAX: f64 = 4.75;

/// What friendships and messages need to know of a person.
pub struct Person {
    pub id: u64,
    pub created: u64,
    pub country: usize,
    /// Where and when the person studied; where not, where the person lives.
    pub studies: (usize, usize, u64),
    pub interest: usize,
    pub browser: &'static str,
    pub ip: u32,
    pub name: (&'static str, &'static str),
}

/// The persons of a network, and the tags of each.
pub struct People {
    pub all: Vec<Person>,
    tags: Vec<u16>,
    first_tag: Vec<usize>,
}

impl People {
    /// The tags of a person's interests, ascending.
    pub fn tags(&self, person: usize) -> &[u16] {
        &self.tags[self.first_tag[person]..self.first_tag[person + 1]]
    }

    pub fn address(&self, person: usize) -> impl std::fmt::Display {
        std::net::Ipv4Addr::from(self.all[person].ip)
    }

    /// Makes and writes `count` persons.
    pub fn write(
        folder: &Path,
        world: &World,
        seed: u64,
        period: Period,
        count: usize,
    ) -> io::Result<(People, Vec<(&'static str, u64)>)> {
        let header = "id|firstName|lastName|gender|birthday|creationDate|locationIP|browserUsed|place|language|email";
        let mut persons = Table::create(folder, "person", header)?;
        let mut interests = Table::create(folder, "person_hasInterest_tag", "Person.id|Tag.id")?;
        let header = "Person.id|Organisation.id|workFrom";
        let mut works = Table::create(folder, "person_workAt_organisation", header)?;
        let header = "Person.id|Organisation.id|classYear";
        let mut studies = Table::create(folder, "person_studyAt_organisation", header)?;
        let mut joined: Vec<u64> =
            (0..count).map(|person| Kind::Joins.random(seed, person).between(period.begin, period.end)).collect();
        joined.sort_unstable();
        let mut people = People { all: Vec::with_capacity(count), tags: Vec::new(), first_tag: vec![0] };
        for (number, created) in joined.into_iter().enumerate() {
            let random = &Kind::Person.random(seed, number);
            let country = world.country(random);
            let city = world.city(country, random);
            let is_female = random.chance(0.5);
            let first_names = if is_female { FEMALE } else { MALE };
            // Names are common here and rare there.
            let first = first_names[(country * 7 + random.rank(first_names.len())) % first_names.len()];
            let last = LAST[(country * 11 + random.rank(LAST.len())) % LAST.len()];
            let age_years = random.between(18, 32);
            let birthday = (period.begin - age_years * YEAR_MS - random.between(0, YEAR_MS)) / DAY_MS * DAY_MS;
            let birth_year = 1970 + birthday / YEAR_MS;
            let id = id(created, period, number as u64, 41);
            let ip = (country as u32 + 11) << 24 | random.next() as u32 >> 8;
            let browser = random.pick(BROWSERS);
            let mut languages = COUNTRIES[country].3.to_owned();
            if !languages.split(';').any(|language| language == "en") {
                languages += ";en";
            }
            let hosts = 1 + random.below(MAIL.len());
            let mails: Vec<String> = MAIL[..hosts].iter().map(|host| format!("{first}{id}@{host}")).collect();
            let (gender, address) = (if is_female { "female" } else { "male" }, std::net::Ipv4Addr::from(ip));
            let mails = mails.join(";");
            persons.row(format_args!(
                "{id}|{first}|{last}|{gender}|{birthday}|{created}|{address}|{browser}|{city}|{languages}|{mails}"
            ))?;
            let mut studied = (usize::MAX, city, 0);
            if random.chance(SHARE) {
                let there = if random.chance(AT_HOME) { country } else { world.country(random) };
                let (university, year) = (world.university(there, random), birth_year + 18 + random.between(0, 6));
                studies.row(format_args!("{id}|{university}|{year}"))?;
                studied = (there, university, year);
            }
            for (company, year) in jobs_of(world, country, birth_year, random) {
                works.row(format_args!("{id}|{company}|{year}"))?;
            }
            let (interest, tags) = interests_of(world, country, random);
            for tag in &tags {
                interests.row(format_args!("{id}|{tag}"))?;
            }
            people.tags.extend(&tags);
            people.first_tag.push(people.tags.len());
            people.all.push(Person {
                id,
                created,
                country,
                studies: studied,
                interest,
                browser,
                ip,
                name: (first, last),
            });
        }
        let counts = [persons, interests, works, studies].into_iter().map(Table::finish).collect::<io::Result<_>>()?;
        Ok((people, counts))
    }
}

/// Where and since when somebody works, by company.
fn jobs_of(world: &World, country: usize, birth_year: u64, random: &Random) -> Vec<(usize, u64)> {
    if !random.chance(SHARE) {
        return Vec::new();
    }
    let one = |_| {
        let there = if random.chance(AT_HOME) { country } else { world.country(random) };
        (world.company(there, random), birth_year + 20 + random.between(0, 10))
    };
    let mut jobs: Vec<(usize, u64)> = (0..1 + (random.unit() * JOBS_MAX) as usize).map(one).collect();
    jobs.sort_unstable();
    jobs.dedup_by_key(|(company, _)| *company);
    jobs
}

/// The main interest of somebody, and all, ascending.
fn interests_of(world: &World, country: usize, random: &Random) -> (usize, Vec<u16>) {
    let wanted = ((INTERESTS_MAX * random.unit().powf(2.4)).ceil() as usize).max(1);
    let main = world.tag(country, random);
    let mut tags = vec![main as u16];
    // Of few tags that everybody likes one draws the same again and again.
    for _ in 0..4 * wanted {
        if tags.len() >= wanted {
            break;
        }
        let tag = world.tag(country, random) as u16;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags.sort_unstable();
    (main, tags)
}
