// Smoke test of gremlin-driver against a server process; see ../README.md for the cases.

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.tinkerpop.gremlin.driver.Client;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.Result;
import org.apache.tinkerpop.gremlin.driver.exception.ResponseException;
import org.apache.tinkerpop.gremlin.driver.remote.DriverRemoteConnection;
import org.apache.tinkerpop.gremlin.process.traversal.AnonymousTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.__;
import org.apache.tinkerpop.gremlin.structure.T;
import org.apache.tinkerpop.gremlin.structure.Transaction;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.util.ser.Serializers;

public class Smoke {
    static final long START_MS_MAX = 60_000;
    static final String EXTERNAL_PORT = System.getenv("GREMLIN_PORT");
    static final String TX_SOURCE = Optional.ofNullable(System.getenv("GREMLIN_TX_SOURCE")).orElse("g");
    static final Set<Integer> CONFLICT_STATUS = EXTERNAL_PORT == null ? Set.of(596) : Set.of(500, 596);
    static final List<Serializers> FORMATS = List.of(Serializers.GRAPHBINARY_V1, Serializers.GRAPHSON_V3);

    /** The server under test: a process of our own, or one that listens already. */
    static int port;
    static Path folder;
    static Process process;

    interface Case {
        void run() throws Exception;
    }

    static void prepareServer() throws Exception {
        if (EXTERNAL_PORT != null) {
            port = Integer.parseInt(EXTERNAL_PORT);
            return;
        }
        try (ServerSocket probe = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = probe.getLocalPort();
        }
        folder = Files.createTempDirectory("ficus-java-");
        startServer();
    }

    static void startServer() throws Exception {
        final String data = folder.resolve("data").toString();
        process = new ProcessBuilder(System.getenv("FICUS_BIN"), "serve", "--data-dir", data,
                "--listen", "127.0.0.1:" + port, "--demo", "tinkerpop")
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(folder.resolve("log").toFile()))
                .start();
        for (long deadline = System.currentTimeMillis() + START_MS_MAX; System.currentTimeMillis() < deadline; Thread.sleep(50)) {
            if (!process.isAlive()) throw new AssertionError("the server ended with " + process.exitValue());
            try (Socket socket = new Socket("127.0.0.1", port)) {
                return;
            } catch (IOException notYet) {
                // The next round tries again.
            }
        }
        throw new AssertionError("the server does not listen");
    }

    static void killServer() throws InterruptedException {
        if (process != null) process.destroyForcibly().waitFor();
    }

    static Cluster clusterOf(final Serializers format) {
        return Cluster.build("127.0.0.1").port(port).serializer(format).maxConnectionPoolSize(2).minConnectionPoolSize(1)
                .reconnectInterval(200).create();
    }

    static void expect(final Object expected, final Object actual) {
        if (!Objects.equals(expected, actual)) throw new AssertionError("expected " + expected + ", found " + actual);
    }

    static void expectRefusal(final Set<Integer> codes, final String text, final Callable<?> action) throws Exception {
        final Object answer;
        try {
            answer = action.call();
        } catch (Exception error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (cause instanceof ResponseException refused) {
                    final int code = refused.getResponseStatusCode().getValue();
                    if (codes.contains(code) && String.valueOf(refused.getMessage()).contains(text)) return;
                    throw new AssertionError("expected " + codes + " with " + text + ", found " + code + ": " + refused.getMessage());
                }
            }
            throw error;
        }
        throw new AssertionError("expected an error, found " + answer);
    }

    static List<Object> submit(final Client client, final String gremlin, final Map<String, Object> bindings) throws Exception {
        return client.submit(gremlin, bindings).all().get().stream().map(Result::getObject).toList();
    }

    static List<Object> submit(final Client client, final String gremlin) throws Exception {
        return submit(client, gremlin, Map.of());
    }

    interface WithClient {
        void run(Client client) throws Exception;
    }

    interface WithSource {
        void run(GraphTraversalSource g) throws Exception;
    }

    static void client(final Serializers format, final String source, final WithClient body) throws Exception {
        final Cluster cluster = clusterOf(format);
        try {
            body.run(cluster.connect().alias(source));
        } finally {
            cluster.close();
        }
    }

    static void source(final Serializers format, final String source, final WithSource body) throws Exception {
        final Cluster cluster = clusterOf(format);
        try (var connection = DriverRemoteConnection.using(cluster, source)) {
            body.run(AnonymousTraversalSource.traversal().with(connection));
        } finally {
            cluster.close();
        }
    }

    static void text() throws Exception {
        for (Serializers format : FORMATS) {
            client(format, "gmodern", modern -> {
                expect(List.of(6L), submit(modern, "g.V().count()"));
                expect(List.of("josh", "vadas"), submit(modern, "g.V().has('name','marko').out('knows').values('name').order()"));
            });
        }
    }

    static void bytecode() throws Exception {
        for (Serializers format : FORMATS) {
            source(format, "gmodern", g -> {
                expect(List.of("josh", "vadas"), g.V().has("person", "name", "marko").out("knows").values("name").order().toList());
                final Vertex vertex = g.V().has("name", "marko").next();
                expect("person", vertex.label());
                final Map<String, Object> properties = new HashMap<>();
                vertex.properties().forEachRemaining(property -> properties.put(property.key(), property.value()));
                expect(Map.of("name", "marko", "age", 29), properties);
                expect(Map.of("person", 4L, "software", 2L), g.V().groupCount().by(T.label).next());
            });
        }
    }

    static void parameters() throws Exception {
        final Map<String, Object> bindings = Map.of("start", 1, "relation", "created");
        for (Serializers format : FORMATS) {
            client(format, "gmodern", modern ->
                    expect(List.of("lop"), submit(modern, "g.V(start).out(relation).values('name')", bindings)));
        }
    }

    static void syntaxError() throws Exception {
        client(FORMATS.get(0), "gmodern", modern -> {
            expectRefusal(Set.of(597), "outt", () -> submit(modern, "g.V().outt('knows')"));
            expect(List.of(6L), submit(modern, "g.V().count()"));
        });
    }

    static void runtimeError() throws Exception {
        source(FORMATS.get(0), "gmodern", g -> {
            expectRefusal(Set.of(500), "not a number", () -> g.inject("not a number").asNumber().toList());
            expect(6L, g.V().count().next());
        });
    }

    static void failStep() throws Exception {
        source(FORMATS.get(0), "gmodern", g ->
                expectRefusal(Set.of(595), "stop here", () -> g.V().fail("stop here").toList()));
    }

    static void commit() throws Exception {
        source(FORMATS.get(0), TX_SOURCE, g -> {
            g.V().drop().iterate();
            final Transaction tx = g.tx();
            final GraphTraversalSource gtx = tx.begin();
            gtx.addV("java").property("name", "kept").iterate();
            expect(1L, gtx.V().hasLabel("java").count().next());
            expect(0L, g.V().hasLabel("java").count().next());
            tx.commit();
            expect(1L, g.V().hasLabel("java").count().next());
        });
    }

    static void rollback() throws Exception {
        source(FORMATS.get(0), TX_SOURCE, g -> {
            final Transaction tx = g.tx();
            final GraphTraversalSource gtx = tx.begin();
            gtx.addV("undone").iterate();
            expect(1L, gtx.V().hasLabel("undone").count().next());
            tx.rollback();
            expect(0L, g.V().hasLabel("undone").count().next());
        });
    }

    static void conflict() throws Exception {
        source(FORMATS.get(0), TX_SOURCE, g -> {
            g.V().drop().iterate();
            g.addV("contended").property("n", 0).iterate();
            final Transaction first = g.tx();
            final Transaction second = g.tx();
            final GraphTraversalSource one = first.begin();
            final GraphTraversalSource two = second.begin();
            one.V().hasLabel("contended").property("n", 1).iterate();
            expect(0, two.V().hasLabel("contended").values("n").next());
            first.commit();
            expectRefusal(CONFLICT_STATUS, "", () -> {
                two.V().hasLabel("contended").property("n", 2).iterate();
                second.commit();
                return "committed";
            });
            final Transaction retry = g.tx();
            retry.begin(GraphTraversalSource.class).V().hasLabel("contended").property("n", 3).iterate();
            retry.commit();
            expect(List.of(3), g.V().hasLabel("contended").values("n").toList());
        });
    }

    static void stream() throws Exception {
        for (Serializers format : FORMATS) {
            client(format, "ggrateful", grateful -> {
                int rows = 0;
                for (Result ignored : grateful.submit("g.V().both().both().limit(10000).values('name')")) rows++;
                expect(10_000, rows);
            });
        }
    }

    static void timeout() throws Exception {
        source(FORMATS.get(0), "ggrateful", g -> {
            expectRefusal(Set.of(598), "", () ->
                    g.with("evaluationTimeout", 300L).V().repeat(__.both().simplePath()).times(30).count().next());
            expect(808L, g.V().count().next());
        });
    }

    static void reconnect() throws Exception {
        client(FORMATS.get(0), TX_SOURCE, remote -> {
            submit(remote, "g.addV('survivor').property('name','java')");
            killServer();
            startServer();
            for (long deadline = System.currentTimeMillis() + START_MS_MAX; ; Thread.sleep(100)) {
                try {
                    expect(List.of("java"), submit(remote, "g.V().hasLabel('survivor').values('name')"));
                    return;
                } catch (Exception broken) {
                    // Whatever the driver makes of a broken connection.
                    if (System.currentTimeMillis() > deadline) throw broken;
                }
            }
        });
    }

    static int failed = 0;

    static void run(final String name, final Case body) {
        try {
            body.run();
            System.out.println("ok " + name);
        } catch (Exception | AssertionError error) {
            failed++;
            System.out.println("not ok " + name + ": " + error);
        }
    }

    public static void main(final String[] arguments) throws Exception {
        prepareServer();
        run("text", Smoke::text);
        run("bytecode", Smoke::bytecode);
        run("parameters", Smoke::parameters);
        run("syntax_error", Smoke::syntaxError);
        run("runtime_error", Smoke::runtimeError);
        run("fail_step", Smoke::failStep);
        run("commit", Smoke::commit);
        run("rollback", Smoke::rollback);
        run("conflict", Smoke::conflict);
        run("stream", Smoke::stream);
        run("timeout", Smoke::timeout);
        if (EXTERNAL_PORT == null) run("reconnect", Smoke::reconnect);
        else System.out.println("skip reconnect");
        killServer();
        if (folder != null) {
            try (var paths = Files.walk(folder)) {
                paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
            }
        }
        System.exit(failed > 0 ? 1 : 0);
    }
}
