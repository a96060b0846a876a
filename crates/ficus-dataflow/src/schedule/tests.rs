use super::*;
use crate::kit::random::Random;

/// Runs one turn of the next item, which has work for `units` at most `quota`; puts it back if it has more.
fn turn(schedule: &mut Schedule<Item>, quota: u64) -> Option<(u64, u64)> {
    let (tenant, mut item) = schedule.next()?;
    let units = item.left.min(quota);
    item.left -= units;
    item.turns += 1;
    schedule.served(tenant, units, 0);
    if item.left > 0 {
        schedule.add(tenant, item.turns, 0, item);
    }
    Some((tenant.number, units))
}

struct Item {
    name: u32,
    left: u64,
    turns: u64,
}

fn item(name: u32, left: u64) -> Item {
    Item { name, left, turns: 0 }
}

#[test]
fn tenants_with_work_differ_by_at_most_one_turn_each() {
    const QUOTA: u64 = 100;
    for seed in 0..200 {
        let mut random = Random(seed);
        let mut schedule = Schedule::default();
        let tenants = 2 + random.below(4);
        for tenant in 0..tenants {
            for name in 0..1 + random.below(5) {
                schedule.add(Tenant::numbered(tenant), 0, 0, item(name as u32, 1_000_000));
            }
        }
        let mut served = vec![0_u64; tenants as usize];
        for _ in 0..500 {
            // Turns that end early (a full sink) are cheaper.
            let quota = 1 + random.below(QUOTA);
            let (tenant, units) = turn(&mut schedule, quota).unwrap();
            served[tenant as usize] += units;
            let (least, most) = (served.iter().min().unwrap(), served.iter().max().unwrap());
            assert!(most - least <= QUOTA, "seed {seed}: {served:?}");
        }
    }
}

#[test]
fn a_tenant_that_comes_later_starts_where_the_others_are() {
    let mut schedule = Schedule::default();
    schedule.add(Tenant::numbered(1), 0, 0, item(0, 1_000_000));
    for _ in 0..1000 {
        turn(&mut schedule, 10);
    }
    schedule.add(Tenant::numbered(2), 0, 0, item(0, 1_000_000));
    let mut served = HashMap::<u64, u64>::new();
    for _ in 0..100 {
        let (tenant, units) = turn(&mut schedule, 10).unwrap();
        *served.entry(tenant).or_default() += units;
    }
    assert_eq!(served[&1].abs_diff(served[&2]), 0, "half each, although tenant 1 had all before");
}

#[test]
fn a_tenant_that_worked_while_nobody_else_did_pays_nothing_for_it() {
    let mut schedule = Schedule::default();
    schedule.add(Tenant::numbered(1), 0, 0, item(0, 10_000));
    while turn(&mut schedule, 10).is_some() {}
    // Tenant 1 is idle now and tenant 2 new.
    schedule.add(Tenant::numbered(2), 0, 0, item(0, 1_000_000));
    turn(&mut schedule, 10);
    schedule.add(Tenant::numbered(1), 0, 0, item(0, 1_000_000));
    let tenants: Vec<u64> = (0..10).map(|_| turn(&mut schedule, 10).unwrap().0).collect();
    assert_eq!(tenants.iter().filter(|tenant| **tenant == 1).count(), 5, "{tenants:?}");
}

#[test]
fn a_small_query_goes_before_large_ones() {
    let mut schedule = Schedule::default();
    for name in 0..5 {
        schedule.add(Tenant::numbered(1), 0, 0, item(name, 1_000_000));
    }
    for _ in 0..1000 {
        turn(&mut schedule, 10);
    }
    schedule.add(Tenant::numbered(1), 0, 0, item(99, 10));
    let (_, next) = schedule.next().unwrap();
    assert_eq!(next.name, 99, "large queries among themselves are owed nothing by those that come");
}

#[test]
fn the_smallest_that_waits_is_known() {
    for seed in 0..50 {
        let mut random = Random(seed);
        let mut schedule = Schedule::default();
        for _ in 0..random.below(60) {
            match random.below(4) {
                0 => drop(schedule.next().map(|(tenant, _)| schedule.served(tenant, 1, 0))),
                1 => schedule.remove_if(|_| random.below(10) == 0),
                _ => {
                    let bits = random.below(30);
                    let turns = random.below(1 << bits);
                    schedule.add(Tenant::numbered(random.below(3)), turns, random.below(9), item(turns as u32, 1));
                }
            }
            let smallest = schedule.turns_of_smallest();
            assert_eq!(smallest.is_some(), schedule.ready() > 0, "seed {seed}");
        }
        let smallest = schedule.turns_of_smallest();
        let least = schedule.drain().into_iter().map(|item| u64::from(item.name)).min();
        match (smallest, least.map(|turns| turns.min(1 << (RANKS - 2)))) {
            (Some(said), Some(least)) => assert!(said <= least && least <= 2 * said, "seed {seed}: {said}, {least}"),
            (said, least) => assert_eq!(said, least, "seed {seed}"),
        }
        assert_eq!(schedule.turns_of_smallest(), None, "seed {seed}");
    }
}

/// The changes from one query to another, and the order in which they end, of so many that have the same work; a new one comes for each that ends.
fn equal_queries(count: u32, work: u64, ends: usize, came: fn(u32) -> u64) -> (usize, Vec<u32>) {
    let mut schedule = Schedule::default();
    let add = |schedule: &mut Schedule<Item>, item: Item| {
        schedule.add(Tenant::numbered(1), item.turns, came(item.name), item);
    };
    (0..count).for_each(|name| add(&mut schedule, item(name, work)));
    let (mut changes, mut last, mut ended) = (0, None, Vec::new());
    while ended.len() < ends {
        let (tenant, mut item) = schedule.next().unwrap();
        changes += usize::from(last.replace(item.name) != Some(item.name));
        // Larger ones get several turns in one go.
        let turns = (item.turns / 2).clamp(1, 16).min(item.left);
        schedule.served(tenant, turns, 0);
        (item.left, item.turns) = (item.left - turns, item.turns + turns);
        match item.left {
            0 => {
                let next = count + ended.len() as u32;
                ended.push(item.name);
                add(&mut schedule, Item { name: next, left: work, turns: 0 });
            }
            _ => add(&mut schedule, item),
        }
    }
    (changes, ended)
}

#[test]
fn of_many_queries_of_one_size_one_ends_after_the_other() {
    for work in [100, 200, 400, 800] {
        let (changes, ended) = equal_queries(16, work, 160, u64::from);
        let (in_turns, _) = equal_queries(16, work, 160, |_| 0);
        assert!(changes * 4 <= in_turns * 3, "{work}: {changes} changes, {in_turns} where all came as one");
        let displaced = ended.iter().enumerate().map(|(place, name)| place.abs_diff(*name as usize)).max();
        assert!(displaced <= Some(16), "{work}: {ended:?}");
    }
}

#[test]
fn small_queries_that_come_one_by_one_wait_for_large_ones_no_longer_than_these_are_owed() {
    // Two large queries of different ranks with long turns; between two small ones they are alone.
    let mut schedule = Schedule::default();
    schedule.add(Tenant::numbered(1), 1 << 10, 0, "large");
    schedule.add(Tenant::numbered(1), 1 << 12, 0, "larger");
    let (mut waited, mut served_small) = (0_u64, 0_u64);
    let serve = |schedule: &mut Schedule<&'static str>| {
        let (tenant, item) = schedule.next().unwrap();
        let (units, turns) = match item {
            "small" => (100, 0),
            "large" => (60_000, 1 << 10),
            _ => (60_000, 1 << 12),
        };
        schedule.served(tenant, units, 0);
        if item != "small" {
            schedule.add(tenant, turns, 0, item);
        }
        (item, units)
    };
    for _ in 0..10_000 {
        for _ in 0..3 {
            serve(&mut schedule);
        }
        schedule.add(Tenant::numbered(1), 0, 0, "small");
        loop {
            match serve(&mut schedule) {
                ("small", units) => {
                    served_small += units;
                    break;
                }
                (_, units) => waited += units,
            }
        }
    }
    assert!(waited <= served_small / 7 + 2 * 60_000, "small ones of {served_small} units waited for {waited} units");
}

#[test]
fn no_query_starves_beside_endless_small_ones() {
    let mut schedule = Schedule::default();
    // One of every rank, and always a new small one.
    for name in 0..12 {
        schedule.add(Tenant::numbered(1), 1 << name, 0, Item { name, left: u64::MAX, turns: 1 << name });
    }
    let mut last_turn = [0_u64; 12];
    for moment in 1..5000_u64 {
        // With gaps, so that the line of small ones does not grow for ever.
        if moment % 4 != 0 {
            schedule.add(Tenant::numbered(1), 0, 0, item(99, 1));
        }
        let (tenant, mut next) = schedule.next().unwrap();
        schedule.served(tenant, 1, 0);
        if next.name != 99 {
            let waited = moment - std::mem::replace(&mut last_turn[next.name as usize], moment);
            // Small ones that were passed over wait in line too.
            assert!(waited <= 13 * FAIR_SHARE.unsigned_abs() * 2, "query {} waited {waited} turns", next.name);
            next.turns += 1;
            schedule.add(tenant, next.turns, 0, next);
        }
    }
    assert!(last_turn.iter().all(|last| *last > 4000), "{last_turn:?}");
}

#[test]
fn a_tenant_with_short_queries_does_not_starve_many_others() {
    // More tenants than are remembered when idle. Tenant 0 sends a new query as soon as the last is done.
    let mut schedule = Schedule::default();
    for tenant in 0..200 {
        schedule.add(Tenant::numbered(tenant), 0, 0, item(0, if tenant == 0 { 10 } else { 1_000_000 }));
    }
    let mut served = vec![0_u64; 200];
    for _ in 0..20_000 {
        let (tenant, units) = turn(&mut schedule, 10).unwrap();
        served[tenant as usize] += units;
        if tenant == 0 {
            schedule.add(Tenant::numbered(0), 0, 0, item(0, 10));
        }
    }
    let (least, most) = (served.iter().min().unwrap(), served.iter().max().unwrap());
    assert!(most - least <= 20, "{served:?}");
}

#[test]
fn idle_tenants_are_forgotten() {
    let mut schedule = Schedule::default();
    for tenant in 0..10_000 {
        schedule.add(Tenant::numbered(tenant), 0, 0, item(0, 1));
        turn(&mut schedule, 10);
    }
    assert!(schedule.tenants.len() <= 4 * IDLE_TENANTS_KEPT, "{} tenants", schedule.tenants.len());
    assert_eq!(schedule.ready(), 0);
}

#[test]
fn draining_returns_what_is_left() {
    let mut schedule = Schedule::default();
    for tenant in 0..3 {
        schedule.add(Tenant::numbered(tenant), tenant, 0, item(tenant as u32, 1));
    }
    turn(&mut schedule, 1);
    let mut names: Vec<u32> = schedule.drain().into_iter().map(|item| item.name).collect();
    names.sort_unstable();
    assert_eq!(names, [1, 2]);
    assert_eq!(schedule.ready(), 0);
    assert!(schedule.next().is_none());
}

#[test]
fn a_query_with_long_turns_gets_its_share_and_no_more() {
    // Turns with much work, and turns that take long for little.
    for (units_of_large, time_of_large) in [(4096, 0), (50, 4096)] {
        let mut schedule = Schedule::default();
        let (mut large, mut small) = (0u64, 0u64);
        schedule.add(Tenant::numbered(1), 1 << 10, 0, "large");
        schedule.add(Tenant::numbered(1), 0, 0, "small");
        for _ in 0..10_000 {
            let (tenant, item) = schedule.next().unwrap();
            // The small one is over and the next comes; the large one goes on.
            let (units, time, turns, own) = match item {
                "large" => (units_of_large, time_of_large, 1 << 10, &mut large),
                _ => (50, 0, 0, &mut small),
            };
            *own += units.max(time);
            schedule.served(tenant, units, time);
            schedule.add(tenant, turns, 0, item);
        }
        let share = large as f64 / (large + small) as f64;
        assert!((0.10..0.15).contains(&share), "{share}");
    }
}

fn weighing(number: u64, weight: u32) -> Tenant {
    Tenant { number, weight: Weight::new(weight).unwrap() }
}

#[test]
fn work_is_as_the_weights() {
    const QUOTA: u64 = 100;
    for seed in 0..200 {
        let mut random = Random(seed);
        let mut schedule = Schedule::default();
        let weights: Vec<u64> = (0..2 + random.below(4)).map(|_| 1 + random.below(10_000)).collect();
        for (number, weight) in weights.iter().enumerate() {
            for name in 0..1 + random.below(5) {
                schedule.add(weighing(number as u64, *weight as u32), 0, 0, item(name as u32, u64::MAX));
            }
        }
        let mut served = vec![0_u64; weights.len()];
        for _ in 0..500 {
            let (tenant, units) = turn(&mut schedule, 1 + random.below(QUOTA)).unwrap();
            served[tenant as usize] += units;
            // Whoever is ahead was behind before its last turn.
            for (one, other) in (0..weights.len()).flat_map(|one| (0..weights.len()).map(move |other| (one, other))) {
                let (ahead, behind) = (served[one] * weights[other], served[other] * weights[one]);
                let slack = (QUOTA + 1) * weights[other];
                assert!(ahead <= behind + slack, "seed {seed}: {served:?} of {weights:?}");
            }
        }
    }
}

#[test]
fn nothing_is_lost_in_small_turns() {
    let mut schedule = Schedule::default();
    // 10,000 / 7,001 is 1 and much more than a third.
    let (even, odd) = (weighing(0, 10_000), weighing(1, 7_001));
    schedule.add(even, 0, 0, item(0, u64::MAX));
    schedule.add(odd, 0, 0, item(0, u64::MAX));
    let mut served = [0_u64; 2];
    for _ in 0..170_010 {
        let (tenant, units) = turn(&mut schedule, 1).unwrap();
        served[tenant as usize] += units;
    }
    assert!(served[0].abs_diff(100_000) <= 1 && served[1].abs_diff(70_010) <= 1, "{served:?}");
}

#[test]
fn the_least_weight_does_not_starve_beside_the_most() {
    let mut schedule = Schedule::default();
    for name in 0..50 {
        schedule.add(weighing(0, 10_000), 0, 0, item(name, u64::MAX));
    }
    schedule.add(weighing(1, 1), 0, 0, item(0, u64::MAX));
    let (mut since, mut turns) = (0_u64, 0);
    for _ in 0..100_000 {
        let (tenant, units) = turn(&mut schedule, 10).unwrap();
        since += units;
        if tenant == 1 {
            assert!(since <= 10 * 10_000 + 2 * 10, "waited for {since} units");
            (since, turns) = (0, turns + 1);
        }
    }
    assert!(turns >= 9, "{turns} turns");
}

#[test]
fn who_comes_later_is_not_owed_the_past_whatever_it_weighs() {
    for (old, new) in [(100, 100), (1, 10_000), (10_000, 1), (100, 300)] {
        let mut schedule = Schedule::default();
        schedule.add(weighing(1, old), 0, 0, item(0, u64::MAX));
        schedule.add(weighing(2, old), 0, 0, item(0, u64::MAX));
        for _ in 0..1000 {
            turn(&mut schedule, 10);
        }
        schedule.add(weighing(3, new), 0, 0, item(0, u64::MAX));
        let mut served = [0_u64; 4];
        while served[1] < 10 * u64::from(old) + 100 {
            let (tenant, units) = turn(&mut schedule, 10).unwrap();
            served[tenant as usize] += units;
        }
        let due = served[1] * u64::from(new) / u64::from(old);
        let slack = 2 * 10 * u64::from(new.div_ceil(old)) + 2 * 10;
        assert!(served[3] <= due + slack, "{old} and {new}: {served:?}, due {due}");
        assert!(served[3] + slack >= due, "{old} and {new}: {served:?}, due {due}");
    }
}

#[test]
fn a_new_weight_counts_from_then_on() {
    let mut schedule = Schedule::default();
    schedule.add(weighing(1, 100), 0, 0, item(0, 1000));
    schedule.add(weighing(2, 100), 0, 0, item(0, u64::MAX));
    while schedule.ready() == 2 {
        turn(&mut schedule, 10);
    }
    schedule.add(weighing(1, 300), 0, 0, item(0, u64::MAX));
    let mut served = [0_u64; 3];
    for _ in 0..400 {
        let (tenant, units) = turn(&mut schedule, 10).unwrap();
        served[tenant as usize] += units;
    }
    assert!(served[1].abs_diff(3000) <= 20, "{served:?}");
}
