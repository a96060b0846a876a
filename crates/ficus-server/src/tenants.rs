//! For whom queries run: tenants with their weights and what was done for them, and those who ask in their names.
//!
//! A user is a tenant alone unless the settings put several users into one. Where nobody has to say who asks, there is one tenant for all.
//! The weights say how executors and the line before them are shared (`ficus_dataflow::Tenant`, [`crate::engine::Queries`]).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ficus_dataflow::Weight;
use ficus_query::caller::Caller;

use crate::config::ServerConfig;

/// The name of the only tenant of a server without users.
const ANONYMOUS: &str = "anonymous";

/// Tenants without settings of their own that metrics name; the others are counted together, so that a server with many users has not as
/// many series.
const NAMED_TENANTS: usize = 64;

/// Names that a message about an unknown one lists.
const NAMES_LISTED: usize = 10;

/// For whom queries run.
#[derive(Debug)]
pub struct Tenant {
    name: Arc<str>,
    share: ficus_dataflow::Tenant,
    /// Whether metrics name it.
    is_named: bool,
    /// Queries that were let in.
    queries: AtomicU64,
    /// Work units of their statements that have ended.
    work_units: AtomicU64,
}

impl Tenant {
    fn new(name: &str, number: usize, weight: Weight, is_named: bool) -> Tenant {
        Tenant {
            name: name.into(),
            share: ficus_dataflow::Tenant { number: number as u64, weight },
            is_named,
            queries: AtomicU64::new(0),
            work_units: AtomicU64::new(0),
        }
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// As executors know it.
    pub fn share(&self) -> ficus_dataflow::Tenant {
        self.share
    }

    /// Counts a query that was let in.
    pub(crate) fn count_query(&self) {
        self.queries.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts work of a query.
    pub(crate) fn count_work(&self, units: u64) {
        self.work_units.fetch_add(units, Ordering::Relaxed);
    }

    /// Queries that were let in so far.
    pub fn queries(&self) -> u64 {
        self.queries.load(Ordering::Relaxed)
    }

    /// Work units of statements that have ended so far.
    pub fn work_units(&self) -> u64 {
        self.work_units.load(Ordering::Relaxed)
    }
}

/// Who asks, and in whose name.
#[derive(Clone, Debug)]
pub struct Asker {
    /// The tenant whose share is used.
    pub tenant: Arc<Tenant>,
    /// The user; none where nobody has to say so.
    pub caller: Option<Arc<Caller>>,
}

impl Asker {
    /// Somebody who does not have to say who it is, on a server of its own.
    pub fn anonymous() -> Asker {
        Tenants::without_users().anonymous()
    }

    /// The name of the user.
    pub fn user(&self) -> Option<&Arc<str>> {
        self.caller.as_ref().map(|caller| &caller.user)
    }
}

/// The tenants of a server.
#[derive(Debug)]
pub struct Tenants {
    /// By number; those with settings of their own first.
    all: Vec<Arc<Tenant>>,
}

/// What is known of a tenant at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Queries that run.
    pub running: usize,
    /// Queries in line.
    pub waiting: usize,
}

impl Tenants {
    /// One for all.
    pub fn without_users() -> Tenants {
        Tenants { all: vec![Arc::new(Tenant::new(ANONYMOUS, 0, Weight::default(), true))] }
    }

    /// Whoever asks a server [without users](Tenants::without_users).
    pub fn anonymous(&self) -> Asker {
        Asker { tenant: self.all[0].clone(), caller: None }
    }

    /// The tenants by number.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Tenant>> {
        self.all.iter()
    }

    /// The tenants that the settings and the names of the users make, and who asks when a user does. `users` is sorted.
    ///
    /// Errors: settings that name nobody, name somebody twice, or have a weight that is none.
    pub(crate) fn of_users(config: &ServerConfig, users: &[&str]) -> Result<(Tenants, HashMap<String, Asker>), String> {
        let is_user = |name: &str| users.binary_search(&name).is_ok();
        let mut all = Vec::new();
        let mut tenant_of: HashMap<&str, usize> = HashMap::new();
        for (name, tenant) in &config.tenants {
            let weight = u32::try_from(tenant.weight).ok().and_then(Weight::new).ok_or_else(|| {
                let (weight, least, most) = (tenant.weight, Weight::MIN, Weight::MAX);
                format!("`tenants.{name}.weight` is {weight}; it must be from {least} to {most}")
            })?;
            let own = [name.clone()];
            let members = match tenant.users.is_empty() {
                true if is_user(name) => own.as_slice(),
                true => {
                    let what = "is neither the name of a user nor lists any in `users`";
                    return Err(format!("`tenants.{name}` {what}; {}", known(users)));
                }
                false if is_user(name) && !tenant.users.contains(name) => {
                    let what = "has the name of a user who is not in it; give it another name, or list the user";
                    return Err(format!("`tenants.{name}` {what}"));
                }
                false => &tenant.users,
            };
            for member in members {
                let user = users.binary_search(&member.as_str()).map(|place| users[place]);
                let user = user.map_err(|_| {
                    format!("`tenants.{name}.users` lists `{member}`, and there is no such user; {}", known(users))
                })?;
                match tenant_of.entry(user) {
                    Entry::Vacant(free) => drop(free.insert(all.len())),
                    Entry::Occupied(_) => {
                        return Err(format!("`tenants.{name}.users` lists `{member}`, who is in a tenant already"));
                    }
                }
            }
            all.push(Arc::new(Tenant::new(name, all.len(), weight, true)));
        }
        if let Some(unknown) = config.administrators.iter().find(|name| !is_user(name)) {
            return Err(format!("`administrators` lists `{unknown}`, and there is no such user; {}", known(users)));
        }
        let mut askers = HashMap::new();
        for user in users {
            let number = *tenant_of.entry(user).or_insert_with(|| {
                let is_named = all.len() < config.tenants.len() + NAMED_TENANTS;
                all.push(Arc::new(Tenant::new(user, all.len(), Weight::default(), is_named)));
                all.len() - 1
            });
            let is_administrator = config.administrators.iter().any(|name| name == user);
            let caller = Some(Arc::new(Caller { user: (*user).into(), is_administrator }));
            askers.insert((*user).to_owned(), Asker { tenant: all[number].clone(), caller });
        }
        Ok((Tenants { all }, askers))
    }

    /// Appends the metrics in the Prometheus text format; `load` tells what the tenant of a number has under way.
    pub(crate) fn write_metrics(&self, load: impl Fn(u64) -> Load, out: &mut String) {
        type Measure<'a> = (&'a str, &'a str, &'a str, &'a dyn Fn(&Tenant) -> u64);
        let measures: [Measure<'_>; 4] = [
            ("ficus_tenant_queries_running", "gauge", "Queries of a tenant that run.", &|tenant| {
                load(tenant.share.number).running as u64
            }),
            ("ficus_tenant_queries_waiting", "gauge", "Queries of a tenant in line.", &|tenant| {
                load(tenant.share.number).waiting as u64
            }),
            ("ficus_tenant_queries_total", "counter", "Queries of a tenant that were let in.", &Tenant::queries),
            (
                "ficus_tenant_work_units_total",
                "counter",
                "Work units, about one per row moved, of a tenant's queries that have ended.",
                &Tenant::work_units,
            ),
        ];
        for (metric, kind, help, measure) in measures {
            let help = format!("{help} Without a name: of all tenants that have no series of their own.");
            let _ = writeln!(out, "# HELP {metric} {help}\n# TYPE {metric} {kind}");
            for tenant in self.all.iter().filter(|tenant| tenant.is_named) {
                let _ = writeln!(out, "{metric}{{tenant=\"{}\"}} {}", escaped(&tenant.name), measure(tenant));
            }
            if self.all.iter().any(|tenant| !tenant.is_named) {
                let others = self.all.iter().filter(|tenant| !tenant.is_named);
                let _ = writeln!(out, "{metric}{{tenant=\"\"}} {}", others.map(|tenant| measure(tenant)).sum::<u64>());
            }
        }
        let help = "What a tenant is due of the executors beside others that have work.";
        let _ = writeln!(out, "# HELP ficus_tenant_weight {help}\n# TYPE ficus_tenant_weight gauge");
        for tenant in self.all.iter().filter(|tenant| tenant.is_named) {
            let (name, weight) = (escaped(&tenant.name), tenant.share.weight);
            let _ = writeln!(out, "ficus_tenant_weight{{tenant=\"{name}\"}} {weight}");
        }
    }
}

/// The names of the users, for a message.
fn known(users: &[&str]) -> String {
    let listed: Vec<String> = users.iter().take(NAMES_LISTED).map(|user| format!("`{user}`")).collect();
    let more = if users.len() > NAMES_LISTED { ", …" } else { "" };
    format!("users are {}{more}", listed.join(", "))
}

/// A label's value as the text format of metrics wants it.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TenantConfig;

    fn config(tenants: &[(&str, i64, &[&str])], administrators: &[&str]) -> ServerConfig {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        ServerConfig {
            tenants: tenants
                .iter()
                .map(|(name, weight, users)| ((*name).into(), TenantConfig { weight: *weight, users: owned(users) }))
                .collect(),
            administrators: owned(administrators),
            ..ServerConfig::default()
        }
    }

    #[test]
    fn users_are_tenants_alone_or_together() {
        let config = config(&[("anna", 300, &[]), ("team", 1, &["bert", "carl"])], &["carl"]);
        let (tenants, askers) = Tenants::of_users(&config, &["anna", "bert", "carl", "dora"]).expect("it can work");
        let of = |user: &str| {
            let Asker { tenant, caller } = &askers[user];
            let caller = caller.as_ref().expect("users are known");
            assert_eq!(&*caller.user, user);
            (tenant.name.to_string(), tenant.share.number, tenant.share.weight.get(), caller.is_administrator)
        };
        assert_eq!(of("anna"), ("anna".into(), 0, 300, false));
        assert_eq!(of("bert"), ("team".into(), 1, 1, false));
        assert_eq!(of("carl"), ("team".into(), 1, 1, true));
        assert_eq!(of("dora"), ("dora".into(), 2, 100, false));
        assert_eq!(tenants.iter().count(), 3);
    }

    #[test]
    fn settings_that_cannot_work_are_named() {
        for (config, parts) in [
            (config(&[("anna", 0, &[])], &[]), ["`tenants.anna.weight` is 0", "from 1 to 10000"]),
            (config(&[("anna", -3, &[])], &[]), ["`tenants.anna.weight` is -3", "from 1 to 10000"]),
            (config(&[("anna", 10_001, &[])], &[]), ["is 10001", "from 1 to 10000"]),
            (config(&[("ana", 1, &[])], &[]), ["`tenants.ana` is neither", "users are `anna`, `bert`"]),
            (config(&[("team", 1, &["ana"])], &[]), ["`tenants.team.users` lists `ana`", "users are `anna`, `bert`"]),
            (config(&[("anna", 1, &["bert"])], &[]), ["`tenants.anna` has the name of a user", "another name"]),
            (config(&[("a", 1, &["bert"]), ("b", 1, &["bert"])], &[]), ["`tenants.b.users`", "in a tenant already"]),
            (config(&[("bert", 1, &[]), ("a", 1, &["bert"])], &[]), ["`tenants.bert", "in a tenant already"]),
            (config(&[("a", 1, &["bert", "bert"])], &[]), ["`tenants.a.users`", "in a tenant already"]),
            (config(&[], &["root"]), ["`administrators` lists `root`", "users are `anna`, `bert`"]),
        ] {
            let error = Tenants::of_users(&config, &["anna", "bert"]).expect_err(parts[0]);
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }

    #[test]
    fn metrics_name_a_bounded_number_of_tenants() {
        let names: Vec<String> = (0..200).map(|number| format!("user{number:03}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let config = config(&[("user199", 7, &[])], &[]);
        let (tenants, askers) = Tenants::of_users(&config, &names).expect("it can work");
        for asker in askers.values() {
            asker.tenant.count_query();
            asker.tenant.count_work(10);
        }
        let mut text = String::new();
        tenants.write_metrics(|number| Load { running: number as usize, waiting: 1 }, &mut text);
        let lines = |metric: &str| text.lines().filter(|line| line.starts_with(&format!("{metric}{{"))).count();
        assert_eq!(lines("ficus_tenant_queries_total"), 1 + NAMED_TENANTS + 1);
        assert!(text.contains("ficus_tenant_weight{tenant=\"user199\"} 7\n"), "{text}");
        assert!(text.contains("ficus_tenant_work_units_total{tenant=\"user199\"} 10\n"), "{text}");
        assert!(text.contains("ficus_tenant_queries_total{tenant=\"\"} 135\n"), "{text}");
        assert!(text.contains("ficus_tenant_work_units_total{tenant=\"\"} 1350\n"), "{text}");
        assert!(text.contains("ficus_tenant_queries_waiting{tenant=\"\"} 135\n"), "{text}");
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
