//! Looking a value up among many, instead of holding it against each.
//!
//! A [`Membership`] knows where in a collection the values are that one may be equal to; whether they are, [`equals`] says. So the answer is that of
//! comparing with all members, one by one. Equality of numbers is by the type that two of them meet in, and not transitive: a number is looked up in as
//! many ways as there are types among the members. What cannot be looked up, such as an element that is not stored, is held against all members, or, as
//! a member, against all that is looked up.

use std::hash::{BuildHasher, Hash, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::compare::equals;
use crate::number::to_integer;
use crate::{ElementResolver, Value};

/// Members that are told apart by comparing them; more with one hash are held against all that is looked up.
const EQUAL_HASHES_MAX: usize = 64;

/// How many members of a list, map or set the hash of a value takes, by how deep they are.
const MEMBERS_HASHED: [usize; 3] = [64, 8, 4];

/// Up to here all integers are different floats.
const EXACT_FLOAT_MAX: f64 = (1u64 << 24) as f64;

/// Up to here all integers are different doubles.
const EXACT_DOUBLE_MAX: f64 = (1u64 << 53) as f64;

/// Where the members of a growing collection are, by hashes of them.
#[derive(Clone, Debug, Default)]
pub struct Membership {
    /// Hash and place of a member.
    table: HashTable<(u64, u32)>,
    /// Places of members that have no hash.
    loose: Vec<u32>,
    /// How many members there are.
    count: usize,
    /// The kinds of numbers among them.
    numbers: Numbers,
    hashes: DefaultHashBuilder,
}

/// Which kinds of numbers there are.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    integers: bool,
    floats: bool,
    doubles: bool,
    unbounded: bool,
}

impl Numbers {
    /// Whether all are integers of at most eight bytes.
    fn are_integers(self) -> bool {
        self.integers && !self.floats && !self.doubles && !self.unbounded
    }
}

/// What is hashed of a number of the kind.
#[derive(Hash)]
enum Number {
    Integer(i64),
    Float(u32),
    Double(u64),
    /// The decimal's text, which the collection's numbers of this kind have in one form.
    Unbounded(String),
}

impl Membership {
    /// What it takes for each member.
    pub const MEMBER_BYTES: usize = 2 * (size_of::<(u64, u32)>() + 1) + size_of::<u32>();

    /// How many members it knows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Takes note of the next member; `at` is the collection.
    pub fn push<'v>(&mut self, member: &Value, at: impl Fn(usize) -> Option<&'v Value>) {
        let Ok(place) = u32::try_from(self.count) else { return };
        self.count += 1;
        let hash = match Number::of(member) {
            Some(number) => {
                match number {
                    Number::Integer(_) => self.numbers.integers = true,
                    Number::Float(_) => self.numbers.floats = true,
                    Number::Double(_) => self.numbers.doubles = true,
                    Number::Unbounded(_) => self.numbers.unbounded = true,
                }
                Some(self.hashes.hash_one(number))
            }
            None => self.hash(member),
        };
        let Some(hash) = hash else {
            self.loose.push(place);
            return;
        };
        let mut others = 0;
        for (known, other) in self.table.iter_hash(hash) {
            if *known == hash {
                others += 1;
                if at(*other as usize) == Some(member) {
                    return;
                }
            }
        }
        match others < EQUAL_HASHES_MAX {
            true => _ = self.table.insert_unique(hash, (hash, place), |(hash, _)| *hash),
            false => self.loose.push(place),
        }
    }

    /// Whether a value is equal to a member of the collection `at`.
    pub fn contains<'v>(
        &self,
        value: &Value,
        at: impl Fn(usize) -> Option<&'v Value>,
        resolver: &dyn ElementResolver,
    ) -> bool {
        let is_at = |place: usize| at(place).is_some_and(|member| equals(value, member, resolver));
        let is_under = |hash: u64| {
            let mut found = self.table.iter_hash(hash);
            found.any(|(known, place)| *known == hash && is_at(*place as usize))
        };
        if self.loose.iter().any(|place| is_at(*place as usize)) {
            return true;
        }
        let looked_up = match Number::of(value) {
            // What most collections of numbers are, and are asked about.
            Some(number @ Number::Integer(_)) if self.numbers.are_integers() => {
                Some(is_under(self.hashes.hash_one(number)))
            }
            Some(_) => self
                .of_number(value)
                .map(|ways| ways.into_iter().flatten().map(|way| self.hashes.hash_one(way)).any(is_under)),
            None => self.hash(value).map(is_under),
        };
        looked_up.unwrap_or_else(|| (0..self.count).any(is_at))
    }

    /// What the members that a number may be equal to are hashed by; `None` if these may be many.
    fn of_number(&self, value: &Value) -> Option<[Option<Number>; 4]> {
        let Numbers { integers, floats, doubles, unbounded } = self.numbers;
        let mut ways = [None, None, None, None];
        let as_unbounded = || Number::unbounded(value);
        match value {
            Value::Float(_) | Value::Double(_) => {
                let (double, exact_max) = match value {
                    Value::Float(float) => (f64::from(*float), EXACT_FLOAT_MAX),
                    Value::Double(double) => (*double, EXACT_DOUBLE_MAX),
                    _ => return None,
                };
                if double.is_nan() {
                    return Some(ways);
                }
                if integers && double.is_finite() {
                    if double.abs() >= exact_max {
                        return None;
                    }
                    ways[0] = (double.fract() == 0.0).then_some(Number::Integer(double as i64));
                }
                let float = double as f32;
                ways[1] = (floats && f64::from(float) == double).then(|| Number::float(float));
                ways[2] = doubles.then(|| Number::double(double));
                ways[3] = (unbounded && double.is_finite()).then(as_unbounded).flatten();
            }
            Value::BigInteger(_) | Value::BigDecimal(_) => {
                if integers || floats || doubles {
                    return None;
                }
                ways[3] = as_unbounded();
            }
            _ => {
                let integer = to_integer(value);
                let double = integer as f64;
                // A long meets a float among the doubles.
                let float = match value {
                    Value::Long(_) => Some(double as f32).filter(|float| f64::from(*float) == double),
                    _ => Some(integer as f32),
                };
                ways[0] = integers.then_some(Number::Integer(integer));
                ways[1] = float.filter(|_| floats).map(Number::float);
                ways[2] = doubles.then(|| Number::double(double));
                ways[3] = unbounded.then(as_unbounded).flatten();
            }
        }
        Some(ways)
    }

    /// A hash that equal values have in common; `None` if they have none.
    fn hash(&self, value: &Value) -> Option<u64> {
        let mut hasher = self.hashes.build_hasher();
        self.feed(value, &mut hasher, 0)?;
        Some(hasher.finish())
    }

    fn feed(&self, value: &Value, hasher: &mut impl Hasher, depth: usize) -> Option<()> {
        /// What only looks like the same kind of value.
        #[derive(Hash)]
        enum Kind {
            Plain,
            Number,
            Vertex,
            Edge,
            Property,
            List,
            Path,
            Set,
            Map,
            Entry,
        }
        let taken = MEMBERS_HASHED.get(depth).copied().unwrap_or(0);
        let list = |kind: Kind, members: &[Value], hasher: &mut _| {
            (kind, members.len()).hash(hasher);
            members.iter().take(taken).try_for_each(|member| self.feed(member, hasher, depth + 1))
        };
        let hash_of = |value: &Value| {
            let mut hasher = self.hashes.build_hasher();
            self.feed(value, &mut hasher, depth + 1).map(|()| hasher.finish())
        };
        match value {
            Value::List(members) => list(Kind::List, members, hasher)?,
            Value::Path(path) => list(Kind::Path, &path.objects, hasher)?,
            Value::Set(_) | Value::BulkSet(_) => {
                let (count, mut members): (u64, Box<dyn Iterator<Item = (&Value, u64)>>) = match value {
                    Value::Set(set) => (set.len() as u64, Box::new(set.iter().map(|member| (member, 1)))),
                    Value::BulkSet(set) => {
                        let count = set.counts.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
                        (count, Box::new(set.counts.iter().map(|(member, count)| (member, *count))))
                    }
                    _ => return None,
                };
                (Kind::Set, count).hash(hasher);
                if count <= taken as u64 {
                    let sum = members.try_fold(0u64, |sum, (member, count)| {
                        Some(sum.wrapping_add(hash_of(member)?.wrapping_mul(count)))
                    })?;
                    sum.hash(hasher);
                }
            }
            Value::Map(map) => {
                (Kind::Map, map.len()).hash(hasher);
                if map.len() <= taken {
                    let sum = map.iter().try_fold(0u64, |sum, (key, value)| {
                        Some(sum.wrapping_add(hash_of(key)?.rotate_left(1) ^ hash_of(value)?))
                    })?;
                    sum.hash(hasher);
                }
            }
            Value::Entry(entry) => {
                Kind::Entry.hash(hasher);
                self.feed(&entry.0, hasher, depth + 1)?;
                self.feed(&entry.1, hasher, depth + 1)?;
            }
            Value::Property(property) => {
                (Kind::Property, &property.key_name).hash(hasher);
                self.feed(&property.value, hasher, depth + 1)?;
            }
            // Inside of others numbers of all types have to have one hash.
            Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_) => {
                (Kind::Number, double_bits(to_integer(value) as f64)).hash(hasher);
            }
            Value::Double(double) => (Kind::Number, double_bits(*double)).hash(hasher),
            Value::Vertex(vertex) => (Kind::Vertex, vertex).hash(hasher),
            Value::Edge(edge) => (Kind::Edge, edge).hash(hasher),
            Value::Null
            | Value::Bool(_)
            | Value::Char(_)
            | Value::String(_)
            | Value::Uuid(_)
            | Value::DateTime(_)
            | Value::Duration(_)
            | Value::Binary(_) => {
                (Kind::Plain, value).hash(hasher);
            }
            Value::T(_)
            | Value::Direction(_)
            | Value::Order(_)
            | Value::Scope(_)
            | Value::Pop(_)
            | Value::Column(_)
            | Value::Merge(_)
            | Value::Operator(_) => {
                (Kind::Plain, value).hash(hasher);
            }
            _ => return None,
        }
        Some(())
    }
}

impl Number {
    fn of(value: &Value) -> Option<Number> {
        match value {
            Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_) => {
                Some(Number::Integer(to_integer(value)))
            }
            Value::Float(float) => Some(Number::float(*float)),
            Value::Double(double) => Some(Number::double(*double)),
            Value::BigInteger(_) | Value::BigDecimal(_) => Number::unbounded(value),
            _ => None,
        }
    }

    fn float(float: f32) -> Number {
        // Zero is equal to negative zero.
        Number::Float((float + 0.0).to_bits())
    }

    fn double(double: f64) -> Number {
        Number::Double(double_bits(double))
    }

    fn unbounded(value: &Value) -> Option<Number> {
        let decimal = crate::number::to_decimal(value).ok()?.normalized();
        let (digits, exponent) = decimal.as_bigint_and_exponent();
        Some(Number::Unbounded(format!("{digits}e{exponent}")))
    }
}

fn double_bits(double: f64) -> u64 {
    (double + 0.0).to_bits()
}

#[cfg(test)]
#[path = "membership_tests.rs"]
mod tests;
