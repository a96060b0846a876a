//! Users as tenants: who may see and end whose queries, and that a flood of one leaves the others their place.

use data_encoding::BASE64;
use ficus_model::Value;
use ficus_server::{ServerConfig, TenantConfig, UserConfig};

use crate::authentication::hash;
use crate::client::*;
use crate::queries::{ENDLESS, code, field, listed, serve_configured};

/// Anna, bert, who may do more, and the team of carl and dora.
fn users(config: &mut ServerConfig) {
    let user = |name: &str| UserConfig { name: name.into(), password_hash: hash(name) };
    config.users = ["anna", "bert", "carl", "dora"].map(user).into();
    config.administrators = vec!["bert".into()];
    let team = TenantConfig { users: vec!["carl".into(), "dora".into()], ..TenantConfig::default() };
    let anna = TenantConfig { weight: 300, ..TenantConfig::default() };
    config.tenants = [("team".to_owned(), team), ("anna".to_owned(), anna)].into();
}

fn basic(user: &str) -> String {
    format!("Basic {}", BASE64.encode(format!("{user}:{user}").as_bytes()))
}

async fn client(server: &Server, user: &str) -> Client {
    server.connect_with(&[("authorization", &basic(user))]).await.expect("the password is right")
}

/// What `call()` of a service yields.
async fn call(client: &mut Client, service: &str) -> Vec<Value> {
    let answers = client.ask(&eval(&format!("g.call('{service}')"))).await;
    assert_eq!(code(answers.last().unwrap()), (200, None), "{answers:?}");
    answers.iter().flat_map(values).collect()
}

fn kill(query: &Value) -> String {
    let Value::String(id) = field(query, "id") else { panic!("{query:?}") };
    format!("g.call('ficus.kill').with('id','{id}')")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_are_open_to_their_users_and_to_administrators() {
    let server = serve_configured(8, false, users).await;
    let (mut running, mut anna) = (client(&server, "anna").await, client(&server, "anna").await);
    running.send(&eval(ENDLESS)).await;
    let own = listed(&mut anna, "running", 1).await;
    assert_eq!((field(&own[0], "user"), field(&own[0], "tenant")), (text("anna"), text("anna")));
    // Others see that it runs, not what it asks, and cannot end it.
    let mut carl = client(&server, "carl").await;
    let seen = call(&mut carl, "ficus.queries").await;
    let seen: Vec<&Value> = seen.iter().filter(|query| field(query, "user") == text("anna")).collect();
    assert_eq!((seen.len(), field(seen[0], "id"), field(seen[0], "text")), (1, field(&own[0], "id"), Value::Null));
    let refused = carl.ask_once(&eval(&kill(&own[0]))).await;
    assert_eq!(code(&refused), (403, Some(&text("FICUS-1105"))), "{}", refused.message);
    assert!(refused.message.contains("another user") && refused.message.contains("carl"), "{}", refused.message);
    let header = format!("authorization: {}\r\n", basic("carl"));
    let refused = server.post(&header, &format!("{{\"gremlin\":\"{}\"}}", kill(&own[0]))).await;
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("FICUS-1105"), "{}", refused.text());
    // Members of a tenant do not own each other's queries.
    let mut dora = client(&server, "dora").await;
    dora.send(&eval(ENDLESS)).await;
    let mut bert = client(&server, "bert").await;
    let all = listed(&mut bert, "running", 2).await;
    let of_dora = all.iter().find(|query| field(query, "user") == text("dora")).expect("it runs");
    assert_eq!(field(of_dora, "tenant"), text("team"));
    let refused = carl.ask_once(&eval(&kill(of_dora))).await;
    assert_eq!(code(&refused), (403, Some(&text("FICUS-1105"))), "{}", refused.message);
    // The user and the administrator can.
    assert_eq!(anna.ask_once(&eval(&kill(&own[0]))).await.status, 200);
    assert_eq!(code(&running.next().await), (500, Some(&text("FICUS-2014"))));
    assert_eq!(bert.ask_once(&eval(&kill(of_dora))).await.status, 200);
    assert_eq!(code(&dora.next().await), (500, Some(&text("FICUS-2014"))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_one_tenant_leaves_the_others_their_place() {
    let server = serve_configured(1, false, users).await;
    let refused = client(&server, "anna").await.ask_once(&eval("g.call('ficus.tenants')")).await;
    assert_eq!(code(&refused), (403, Some(&text("FICUS-1105"))), "{}", refused.message);
    let mut flood = Vec::new();
    for _ in 0..4 {
        let mut one = client(&server, "anna").await;
        one.send(&eval(ENDLESS)).await;
        flood.push(one);
    }
    let mut bert = client(&server, "bert").await;
    listed(&mut bert, "running", 1).await;
    listed(&mut bert, "queued", 3).await;
    let mut carl = client(&server, "carl").await;
    for _ in 0..3 {
        let answer = carl.ask_once(&eval("g.inject(7).count()")).await;
        assert_eq!((answer.status, values(&answer)), (200, vec![Value::Long(1)]), "{}", answer.message);
    }
    // Two of a team share its place.
    let mut dora = client(&server, "dora").await;
    carl.send(&eval(ENDLESS)).await;
    listed(&mut bert, "running", 2).await;
    dora.send(&eval(ENDLESS)).await;
    listed(&mut bert, "queued", 4).await;
    let tenants = call(&mut bert, "ficus.tenants").await;
    let told = |name: &str, key: &str| {
        let tenant = tenants.iter().find(|tenant| field(tenant, "tenant") == text(name)).expect(name);
        match field(tenant, key) {
            Value::Long(number) => number,
            other => panic!("{key} of {name} is {other:?}"),
        }
    };
    assert_eq!((told("anna", "weight"), told("anna", "running"), told("anna", "waiting")), (300, 1, 3));
    assert_eq!((told("team", "weight"), told("team", "running"), told("team", "waiting")), (100, 1, 1));
    assert!(told("team", "queries") >= 4 && told("team", "work_units") > 0, "{tenants:?}");
    assert_eq!(tenants.len(), 3, "{tenants:?}");
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\nconnection: close\r\n\r\n",
        basic("anna")
    );
    let metrics = server.http(&request).await.text();
    for line in [
        "ficus_tenant_weight{tenant=\"anna\"} 300",
        "ficus_tenant_queries_running{tenant=\"anna\"} 1",
        "ficus_tenant_queries_waiting{tenant=\"anna\"} 3",
        "ficus_tenant_queries_waiting{tenant=\"team\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} in\n{metrics}");
    }
}

#[tokio::test]
async fn settings_of_tenants_that_cannot_work_keep_the_server_from_starting() {
    for (change, part) in [
        (
            (|config| config.tenants.get_mut("anna").unwrap().weight = 0) as fn(&mut ServerConfig),
            "`tenants.anna.weight`",
        ),
        (|config| config.users.clear(), "there are none; add `users`"),
        (|config| config.administrators.push("root".into()), "`administrators` lists `root`"),
    ] {
        let mut config = ServerConfig { listen: "127.0.0.1:0".into(), ..ServerConfig::default() };
        users(&mut config);
        change(&mut config);
        let error =
            ficus_server::bind(config, std::sync::Arc::new(crate::mock::Mock::default())).await.expect_err(part);
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_users_everybody_may_look_and_end() {
    let server = serve_configured(8, false, |_| ()).await;
    let (mut running, mut other) = (server.connect().await, server.connect().await);
    running.send(&eval(ENDLESS)).await;
    let seen = listed(&mut other, "running", 1).await;
    assert_eq!((field(&seen[0], "user"), field(&seen[0], "tenant")), (Value::Null, text("anonymous")));
    assert_eq!(field(&call(&mut other, "ficus.tenants").await[0], "tenant"), text("anonymous"));
    assert_eq!(other.ask_once(&eval(&kill(&seen[0]))).await.status, 200);
    assert_eq!(code(&running.next().await), (500, Some(&text("FICUS-2014"))));
    assert!(server.metric("ficus_tenant_queries_total{tenant=\"anonymous\"}").await >= 3.0);
}
