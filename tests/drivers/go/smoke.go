// Smoke test of gremlin-go against a server process; see ../README.md for the cases.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
)

const startTimeMax = 60 * time.Second

var anonymous = gremlingo.T__

// The server under test: a process of our own, or one that listens already.
type server struct {
	port     string
	folder   string
	external bool
	process  *exec.Cmd
}

func prepareServer() (*server, error) {
	if port := os.Getenv("GREMLIN_PORT"); port != "" {
		return &server{port: port, external: true}, nil
	}
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(probe.Addr().String())
	if err != nil {
		return nil, err
	}
	probe.Close()
	folder, err := os.MkdirTemp("", "ficus-go-")
	if err != nil {
		return nil, err
	}
	s := &server{port: port, folder: folder}
	return s, s.start()
}

func (s *server) start() error {
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	data, address := filepath.Join(s.folder, "data"), "127.0.0.1:"+s.port
	s.process = exec.Command(os.Getenv("FICUS_BIN"), "serve", "--data-dir", data, "--listen", address, "--demo", "tinkerpop")
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(startTimeMax); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if connection, err := net.Dial("tcp", address); err == nil {
			return connection.Close()
		}
	}
	return errors.New("the server does not listen")
}

func (s *server) kill() {
	if s.process != nil {
		s.process.Process.Kill()
		s.process.Wait()
	}
}

func (s *server) url() string { return "ws://127.0.0.1:" + s.port + "/gremlin" }

var (
	tested         *server
	txSource       = "g"
	conflictStatus = []string{status(596)}
)

func clientOf(source string) *gremlingo.Client {
	client, err := gremlingo.NewClient(tested.url(), func(settings *gremlingo.ClientSettings) {
		settings.TraversalSource, settings.LogVerbosity = source, gremlingo.Off
	})
	must(err)
	return client
}

func connectionOf(source string) *gremlingo.DriverRemoteConnection {
	connection, err := gremlingo.NewDriverRemoteConnection(tested.url(), func(settings *gremlingo.DriverRemoteConnectionSettings) {
		settings.TraversalSource, settings.LogVerbosity = source, gremlingo.Off
	})
	must(err)
	return connection
}

// status is how the driver's error names a status code: it keeps only the code's last byte.
func status(code int) string { return fmt.Sprintf("statusCode: %d", code%256) }

// A failed expectation; main turns it into a "not ok" line.
type failure struct{ message string }

func must(err error) {
	if err != nil {
		panic(failure{err.Error()})
	}
}

func expect(expected, actual any) {
	if !reflect.DeepEqual(expected, actual) {
		panic(failure{fmt.Sprintf("expected %#v, found %#v", expected, actual)})
	}
}

// expectRefusal checks that the error has one of the status codes and a text in its message.
func expectRefusal(err error, text string, codes ...string) {
	if err == nil {
		panic(failure{"expected an error, found none"})
	}
	for _, code := range codes {
		if strings.Contains(err.Error(), code) && strings.Contains(err.Error(), text) {
			return
		}
	}
	panic(failure{fmt.Sprintf("expected %v with %q, found %v", codes, text, err)})
}

func values(results []*gremlingo.Result, err error) []any {
	must(err)
	list := []any{}
	for _, result := range results {
		list = append(list, result.GetInterface())
	}
	return list
}

func submit(client *gremlingo.Client, gremlin string, bindings ...map[string]any) ([]*gremlingo.Result, error) {
	set, err := client.Submit(gremlin, bindings...)
	if err != nil {
		return nil, err
	}
	return set.All()
}

func iterate(traversal *gremlingo.GraphTraversal) { must(<-traversal.Iterate()) }

func count(g *gremlingo.GraphTraversalSource, label string) any {
	return values(g.V().HasLabel(label).Count().ToList())[0]
}

func text() {
	modern := clientOf("gmodern")
	defer modern.Close()
	expect([]any{int64(6)}, values(submit(modern, "g.V().count()")))
	friends := "g.V().has('name','marko').out('knows').values('name').order()"
	expect([]any{"josh", "vadas"}, values(submit(modern, friends)))
}

func bytecode() {
	connection := connectionOf("gmodern")
	defer connection.Close()
	g := gremlingo.Traversal_().With(connection)
	friends := g.V().Has("person", "name", "marko").Out("knows").Values("name").Order().ToList
	expect([]any{"josh", "vadas"}, values(friends()))
	found, err := g.V().Has("name", "marko").Next()
	must(err)
	vertex, err := found.GetVertex()
	must(err)
	expect("person", vertex.Label)
	properties := map[string]any{}
	for _, property := range vertex.Properties.([]any) {
		vertexProperty := property.(*gremlingo.VertexProperty)
		properties[vertexProperty.Label] = vertexProperty.Value
	}
	expect(map[string]any{"name": "marko", "age": int32(29)}, properties)
	labels := map[any]any{"person": int64(4), "software": int64(2)}
	expect([]any{labels}, values(g.V().GroupCount().By(gremlingo.T.Label).ToList()))
}

func parameters() {
	modern := clientOf("gmodern")
	defer modern.Close()
	bindings := map[string]any{"start": int32(1), "relation": "created"}
	expect([]any{"lop"}, values(submit(modern, "g.V(start).out(relation).values('name')", bindings)))
}

func syntaxError() {
	modern := clientOf("gmodern")
	defer modern.Close()
	_, err := submit(modern, "g.V().outt('knows')")
	expectRefusal(err, "outt", status(597))
	expect([]any{int64(6)}, values(submit(modern, "g.V().count()")))
}

func runtimeError() {
	connection := connectionOf("gmodern")
	defer connection.Close()
	g := gremlingo.Traversal_().With(connection)
	_, err := g.Inject("not a number").AsNumber().ToList()
	expectRefusal(err, "not a number", status(500))
	expect([]any{int64(6)}, values(g.V().Count().ToList()))
}

func failStep() {
	connection := connectionOf("gmodern")
	defer connection.Close()
	_, err := gremlingo.Traversal_().With(connection).V().Fail("stop here").ToList()
	expectRefusal(err, "stop here", status(595))
}

func commit() {
	connection := connectionOf(txSource)
	defer connection.Close()
	g := gremlingo.Traversal_().With(connection)
	iterate(g.V().Drop())
	tx := g.Tx()
	gtx, err := tx.Begin()
	must(err)
	iterate(gtx.AddV("go").Property("name", "kept"))
	expect(int64(1), count(gtx, "go"))
	expect(int64(0), count(g, "go"))
	must(tx.Commit())
	expect(int64(1), count(g, "go"))
}

func rollback() {
	connection := connectionOf(txSource)
	defer connection.Close()
	g := gremlingo.Traversal_().With(connection)
	tx := g.Tx()
	gtx, err := tx.Begin()
	must(err)
	iterate(gtx.AddV("undone"))
	expect(int64(1), count(gtx, "undone"))
	must(tx.Rollback())
	expect(int64(0), count(g, "undone"))
}

func conflict() {
	connection := connectionOf(txSource)
	defer connection.Close()
	g := gremlingo.Traversal_().With(connection)
	iterate(g.V().Drop())
	iterate(g.AddV("contended").Property("n", int32(0)))
	first, second, retry := g.Tx(), g.Tx(), g.Tx()
	one, err := first.Begin()
	must(err)
	two, err := second.Begin()
	must(err)
	iterate(one.V().HasLabel("contended").Property("n", int32(1)))
	expect([]any{int32(0)}, values(two.V().HasLabel("contended").Values("n").ToList()))
	must(first.Commit())
	err = <-two.V().HasLabel("contended").Property("n", int32(2)).Iterate()
	if err == nil {
		err = second.Commit()
	}
	expectRefusal(err, "", conflictStatus...)
	three, err := retry.Begin()
	must(err)
	iterate(three.V().HasLabel("contended").Property("n", int32(3)))
	must(retry.Commit())
	expect([]any{int32(3)}, values(g.V().HasLabel("contended").Values("n").ToList()))
}

func stream() {
	grateful := clientOf("ggrateful")
	defer grateful.Close()
	set, err := grateful.Submit("g.V().both().both().limit(10000).values('name')")
	must(err)
	rows := 0
	for {
		_, found, err := set.One()
		must(err)
		if !found {
			break
		}
		rows++
	}
	expect(10_000, rows)
}

func timeout() {
	connection := connectionOf("ggrateful")
	defer connection.Close()
	g := gremlingo.Traversal_().With(connection)
	endless := g.With("evaluationTimeout", int32(300)).V().Repeat(anonymous.Both().SimplePath()).Times(30).Count()
	_, err := endless.ToList()
	expectRefusal(err, "", status(598))
	expect([]any{int64(808)}, values(g.V().Count().ToList()))
}

func reconnect() {
	client := clientOf(txSource)
	defer client.Close()
	_, err := submit(client, "g.addV('survivor').property('name','go')")
	must(err)
	tested.kill()
	must(tested.start())
	deadline := time.Now().Add(startTimeMax)
	for {
		// The driver reports the broken connection at least once.
		answer, err := submit(client, "g.V().hasLabel('survivor').values('name')")
		if err == nil {
			expect([]any{"go"}, values(answer, nil))
			return
		}
		if time.Now().After(deadline) {
			must(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func run(name string, body func()) (passed bool) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
			fmt.Println("ok", name)
			passed = true
		case failure:
			fmt.Printf("not ok %s: %s\n", name, reason.message)
		default:
			fmt.Printf("not ok %s: %v\n", name, reason)
		}
	}()
	body()
	return
}

func main() {
	var err error
	if tested, err = prepareServer(); err != nil {
		fmt.Println("not ok server:", err)
		os.Exit(1)
	}
	if tested.external {
		conflictStatus = append(conflictStatus, status(500))
	}
	if source := os.Getenv("GREMLIN_TX_SOURCE"); source != "" {
		txSource = source
	}
	cases := []struct {
		name string
		body func()
	}{
		{"text", text}, {"bytecode", bytecode}, {"parameters", parameters}, {"syntax_error", syntaxError},
		{"runtime_error", runtimeError}, {"fail_step", failStep}, {"commit", commit}, {"rollback", rollback},
		{"conflict", conflict}, {"stream", stream}, {"timeout", timeout}, {"reconnect", reconnect},
	}
	failed := 0
	for _, c := range cases {
		if c.name == "reconnect" && tested.external {
			fmt.Println("skip reconnect")
		} else if !run(c.name, c.body) {
			failed++
		}
	}
	tested.kill()
	if tested.folder != "" {
		os.RemoveAll(tested.folder)
	}
	if failed > 0 {
		os.Exit(1)
	}
}
