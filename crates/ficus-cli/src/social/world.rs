//! What is there before the people: places, organisations, tags and their classes. Of every scale the same.

use std::io;
use std::path::Path;

use super::random::Random;
use super::table::Table;
use super::words::{self, CONTINENTS, COUNTRIES, TAG_CLASSES};

const CITIES: usize = 1343;
const COMPANIES: usize = 1575;
const UNIVERSITIES: usize = 6380;
const TAGS: usize = 16_080;

/// Tags that people know, the first of them best.
const TAGS_KNOWN: usize = 6000;

/// Of the tags of a person so many are those of the country; the others are popular everywhere.
const OWN_TAGS: f64 = 0.5;

const PLACE_URL: &str = "http://example.org/place/";

/// Places, organisations and tags by number.
pub struct World {
    /// The first city of each country, and behind the last.
    first_city: Vec<usize>,
    /// People of the countries up to each, it included.
    people: Vec<usize>,
    tag_names: Vec<String>,
}

impl World {
    pub fn new() -> World {
        let mut people = Vec::new();
        let mut sum = 0;
        for (.., millions, _) in COUNTRIES {
            sum += usize::from(*millions);
            people.push(sum);
        }
        // One city at least, the others by people.
        let others = CITIES - COUNTRIES.len();
        let first = |country: usize| country + if country == 0 { 0 } else { people[country - 1] * others / sum };
        let first_city = (0..=COUNTRIES.len()).map(first).collect();
        let tag_names =
            (0..TAGS).map(|tag| COUNTRIES.get(tag).map_or_else(|| made_up(tag), |(name, ..)| (*name).into()));
        World { first_city, people, tag_names: tag_names.collect() }
    }

    /// A country, by its people.
    pub fn country(&self, random: &Random) -> usize {
        let dice = random.below(*self.people.last().expect("there are countries"));
        self.people.partition_point(|people| *people <= dice)
    }

    /// The place of a city of a country.
    pub fn city(&self, country: usize, random: &Random) -> usize {
        let (first, next) = (self.first_city[country], self.first_city[country + 1]);
        COUNTRIES.len() + first + random.rank(next - first)
    }

    /// An organisation where people of a country study: some are large.
    pub fn university(&self, country: usize, random: &Random) -> usize {
        let (first, next) = (self.first_city[country], self.first_city[country + 1]);
        let city = first + random.rank(next - first);
        let of_city = (UNIVERSITIES - city).div_ceil(CITIES);
        COMPANIES + city + CITIES * random.rank(of_city)
    }

    /// An organisation where people of a country work.
    pub fn company(&self, country: usize, random: &Random) -> usize {
        let of_country = (COMPANIES - country).div_ceil(COUNTRIES.len());
        country + COUNTRIES.len() * random.below(of_country)
    }

    /// A tag that somebody of a country is interested in.
    pub fn tag(&self, country: usize, random: &Random) -> usize {
        let rank = random.rank(TAGS_KNOWN);
        // A country has its own favourites far behind those of the world.
        let shift = if random.chance(OWN_TAGS) { 20 + country * 53 } else { 0 };
        // Ranks are spread over classes: classes lie beside each other.
        (rank + shift) % TAGS_KNOWN * 7 % TAGS
    }

    pub fn tag_name(&self, tag: usize) -> &str {
        &self.tag_names[tag]
    }

    /// Writes places, organisations, tags and classes.
    pub fn write(&self, folder: &Path) -> io::Result<Vec<(&'static str, u64)>> {
        let mut places = Table::create(folder, "place", "id|name|url|type|isPartOf")?;
        let continent = |number: usize| COUNTRIES.len() + CITIES + number;
        for (country, (name, on, ..)) in COUNTRIES.iter().enumerate() {
            places.row(format_args!("{country}|{name}|{PLACE_URL}{name}|country|{}", continent(usize::from(*on))))?;
        }
        for city in 0..CITIES {
            let country = self.first_city.partition_point(|first| *first <= city) - 1;
            let (id, name) = (COUNTRIES.len() + city, words::name(city * 19));
            places.row(format_args!("{id}|{name}|{PLACE_URL}{name}|city|{country}"))?;
        }
        for (number, name) in CONTINENTS.iter().enumerate() {
            places.row(format_args!("{}|{name}|{PLACE_URL}{name}|continent|", continent(number)))?;
        }
        let mut organisations = Table::create(folder, "organisation", "id|type|name|url|place")?;
        for company in 0..COMPANIES {
            let name = format!("{}_Works", words::name(company * 11));
            let country = company % COUNTRIES.len();
            organisations.row(format_args!("{company}|company|{name}|http://example.org/company/{name}|{country}"))?;
        }
        for number in 0..UNIVERSITIES {
            let (id, city) = (COMPANIES + number, number % CITIES);
            let name = format!("University_{}_of_{}", 1 + number / CITIES, words::name(city * 19));
            let place = COUNTRIES.len() + city;
            organisations.row(format_args!("{id}|university|{name}|http://example.org/university/{name}|{place}"))?;
        }
        let mut classes = Table::create(folder, "tagclass", "id|name|url|isSubclassOf")?;
        for (class, (name, above)) in TAG_CLASSES.iter().enumerate() {
            let above = class_named(above).map_or(String::new(), |above| above.to_string());
            classes.row(format_args!("{class}|{name}|http://example.org/class/{name}|{above}"))?;
        }
        let mut tags = Table::create(folder, "tag", "id|name|url|hasType")?;
        for (tag, name) in self.tag_names.iter().enumerate() {
            tags.row(format_args!("{tag}|{name}|http://example.org/tag/{name}|{}", class_of(tag)))?;
        }
        [places, organisations, classes, tags].into_iter().map(Table::finish).collect()
    }
}

fn made_up(tag: usize) -> String {
    format!("{}_{}", words::name(tag * 23), words::name(tag))
}

fn class_named(name: &str) -> Option<usize> {
    TAG_CLASSES.iter().position(|(class, _)| *class == name)
}

/// The class of a tag: countries are first, all others any class but the top one.
fn class_of(tag: usize) -> usize {
    match tag < COUNTRIES.len() {
        true => class_named("Country").unwrap_or(0),
        false => 1 + tag / 13 % (TAG_CLASSES.len() - 1),
    }
}
