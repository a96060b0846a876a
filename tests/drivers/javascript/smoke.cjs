// Smoke test of the JavaScript driver against a server process; see ../README.md for the cases.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const { spawn } = require('node:child_process');
const { setTimeout: sleep } = require('node:timers/promises');
const gremlin = require('gremlin');

const { t } = gremlin.process;
const __ = gremlin.process.statics;
const START_MS_MAX = 60_000;
const external = process.env.GREMLIN_PORT;
const txSource = process.env.GREMLIN_TX_SOURCE || 'g';
const conflictStatus = external ? [500, 596] : [596];
const MIME = { graphbinary: 'application/vnd.graphbinary-v1.0', graphson3: 'application/vnd.gremlin-v3.0+json' };

/** The server under test: a process of our own, or one that listens already. */
const server = {
  port: Number(external || 0),
  child: null,
  folder: null,
  async prepare() {
    if (external) return;
    this.port = await new Promise((resolve) => {
      const probe = net.createServer().listen(0, '127.0.0.1', () => {
        const { port } = probe.address();
        probe.close(() => resolve(port));
      });
    });
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'ficus-javascript-'));
    await this.start();
  },
  async start() {
    const log = fs.openSync(path.join(this.folder, 'log'), 'a');
    const listen = `127.0.0.1:${this.port}`;
    const flags = ['serve', '--data-dir', path.join(this.folder, 'data'), '--listen', listen, '--demo', 'tinkerpop'];
    this.child = spawn(process.env.FICUS_BIN, flags, { stdio: ['ignore', log, log] });
    for (const deadline = Date.now() + START_MS_MAX; Date.now() < deadline; await sleep(50)) {
      assert.equal(this.child.exitCode, null, 'the server ended');
      const listening = await new Promise((resolve) => {
        const probe = net.connect(this.port, '127.0.0.1');
        probe.on('connect', () => resolve(true)).on('error', () => resolve(false));
        probe.on('connect', () => probe.destroy());
      });
      if (listening) return;
    }
    throw new Error('the server does not listen');
  },
  async kill() {
    if (!this.child) return;
    const gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGKILL');
    await gone;
  },
};

const url = () => `ws://127.0.0.1:${server.port}/gremlin`;
const clientOf = (source, format = 'graphbinary') =>
  new gremlin.driver.Client(url(), { traversalSource: source, mimeType: MIME[format] });
const connectionOf = (source, format = 'graphbinary') =>
  new gremlin.driver.DriverRemoteConnection(url(), { traversalSource: source, mimeType: MIME[format] });
const sourceOf = (connection) => gremlin.process.AnonymousTraversalSource.traversal().withRemote(connection);

/** The error with which the server refuses the action. */
async function refusal(action) {
  let answer;
  try {
    answer = await action();
  } catch (error) {
    if (error.statusCode === undefined) throw error;
    return error;
  }
  throw new Error(`expected an error, found ${JSON.stringify(answer)}`);
}

const cases = {
  async text() {
    for (const format of Object.keys(MIME)) {
      const modern = clientOf('gmodern', format);
      assert.deepEqual((await modern.submit('g.V().count()')).toArray().map(Number), [6]);
      const friends = await modern.submit("g.V().has('name','marko').out('knows').values('name').order()");
      assert.deepEqual(friends.toArray(), ['josh', 'vadas']);
      await modern.close();
    }
  },
  async bytecode() {
    for (const format of Object.keys(MIME)) {
      const connection = connectionOf('gmodern', format);
      const g = sourceOf(connection);
      const friends = await g.V().has('person', 'name', 'marko').out('knows').values('name').order().toList();
      assert.deepEqual(friends, ['josh', 'vadas']);
      const vertex = (await g.V().has('name', 'marko').next()).value;
      assert.equal(vertex.label, 'person');
      const properties = Array.isArray(vertex.properties) ? vertex.properties : Object.values(vertex.properties).flat();
      assert.deepEqual(properties.map((p) => [p.label, p.value]).sort(), [['age', 29], ['name', 'marko']]);
      const labels = (await g.V().groupCount().by(t.label).next()).value;
      assert.deepEqual([Number(labels.get('person')), Number(labels.get('software'))], [4, 2]);
      await connection.close();
    }
  },
  async parameters() {
    for (const format of Object.keys(MIME)) {
      const modern = clientOf('gmodern', format);
      const bindings = { start: 1, relation: 'created' };
      const answer = await modern.submit("g.V(start).out(relation).values('name')", bindings);
      assert.deepEqual(answer.toArray(), ['lop']);
      await modern.close();
    }
  },
  async syntax_error() {
    const modern = clientOf('gmodern');
    const error = await refusal(() => modern.submit("g.V().outt('knows')"));
    assert.equal(error.statusCode, 597);
    assert.match(error.statusMessage, /outt/);
    assert.deepEqual((await modern.submit('g.V().count()')).toArray().map(Number), [6]);
    await modern.close();
  },
  async runtime_error() {
    const connection = connectionOf('gmodern');
    const g = sourceOf(connection);
    const error = await refusal(() => g.inject('not a number').asNumber().toList());
    assert.equal(error.statusCode, 500);
    assert.match(error.statusMessage, /not a number/);
    assert.equal(Number((await g.V().count().next()).value), 6);
    await connection.close();
  },
  async fail_step() {
    const connection = connectionOf('gmodern');
    const error = await refusal(() => sourceOf(connection).V().fail('stop here').toList());
    assert.equal(error.statusCode, 595);
    assert.match(error.statusMessage, /stop here/);
    await connection.close();
  },
  async commit() {
    const connection = connectionOf(txSource);
    const g = sourceOf(connection);
    await g.V().drop().iterate();
    const count = async (source) => Number((await source.V().hasLabel('javascript').count().next()).value);
    const tx = g.tx();
    const gtx = tx.begin();
    await gtx.addV('javascript').property('name', 'kept').iterate();
    assert.equal(await count(gtx), 1);
    assert.equal(await count(g), 0, 'seen before its commit');
    await tx.commit();
    assert.equal(await count(g), 1);
    await connection.close();
  },
  async rollback() {
    const connection = connectionOf(txSource);
    const g = sourceOf(connection);
    const tx = g.tx();
    const gtx = tx.begin();
    await gtx.addV('undone').iterate();
    assert.equal(Number((await gtx.V().hasLabel('undone').count().next()).value), 1);
    await tx.rollback();
    assert.equal(Number((await g.V().hasLabel('undone').count().next()).value), 0);
    await connection.close();
  },
  async conflict() {
    const connection = connectionOf(txSource);
    const g = sourceOf(connection);
    await g.V().drop().iterate();
    await g.addV('contended').property('n', 0).iterate();
    const [first, second] = [g.tx(), g.tx()];
    const [one, two] = [first.begin(), second.begin()];
    await one.V().hasLabel('contended').property('n', 1).iterate();
    assert.equal((await two.V().hasLabel('contended').values('n').next()).value, 0);
    await first.commit();
    const error = await refusal(async () => {
      await two.V().hasLabel('contended').property('n', 2).iterate();
      await second.commit();
    });
    assert.ok(conflictStatus.includes(error.statusCode), error.message);
    const retry = g.tx();
    await retry.begin().V().hasLabel('contended').property('n', 3).iterate();
    await retry.commit();
    assert.deepEqual(await g.V().hasLabel('contended').values('n').toList(), [3]);
    await connection.close();
  },
  async stream() {
    for (const format of Object.keys(MIME)) {
      const grateful = clientOf('ggrateful', format);
      const results = grateful.stream("g.V().both().both().limit(10000).values('name')");
      let rows = 0;
      let batches = 0;
      for await (const batch of results) {
        batches += 1;
        rows += batch.toArray().length;
      }
      assert.equal(rows, 10_000);
      assert.ok(batches > 1);
      await grateful.close();
    }
  },
  async timeout() {
    const connection = connectionOf('ggrateful');
    const g = sourceOf(connection);
    const endless = g.with_('evaluationTimeout', 300).V().repeat(__.both().simplePath()).times(30).count();
    assert.equal((await refusal(() => endless.next())).statusCode, 598);
    assert.equal(Number((await g.V().count().next()).value), 808);
    await connection.close();
  },
  async reconnect() {
    const client = clientOf(txSource);
    await client.submit("g.addV('survivor').property('name','javascript')");
    await server.kill();
    await server.start();
    let answer;
    for (const deadline = Date.now() + START_MS_MAX; answer === undefined; await sleep(100)) {
      try {
        answer = (await client.submit("g.V().hasLabel('survivor').values('name')")).toArray();
      } catch (error) {
        // Whatever the driver makes of a broken connection.
        if (Date.now() > deadline) throw error;
      }
    }
    assert.deepEqual(answer, ['javascript']);
    await client.close();
  },
};

async function main() {
  await server.prepare();
  let failed = 0;
  for (const [name, run] of Object.entries(cases)) {
    if (external && name === 'reconnect') {
      console.log(`skip ${name}`);
      continue;
    }
    try {
      await run();
      console.log(`ok ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`not ok ${name}: ${String(error.stack || error).split('\n').slice(0, 4).join(' ')}`);
    }
  }
  await server.kill();
  if (server.folder) fs.rmSync(server.folder, { recursive: true });
  process.exit(failed ? 1 : 0);
}

main();
