package readmodel_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/readmodel"
)

// openLog starts a log in a directory.
func openLog(ctx context.Context, dir string) (*eventlog.Log, func(), error) {
	server, err := embedded.Start(ctx, embedded.Config{Dir: filepath.Join(dir, "log"), Listen: "127.0.0.1:0"})
	if err != nil {
		return nil, nil, err
	}
	if _, err := server.Apply(ctx, natsdeploy.Settings{Partitions: 1}); err != nil {
		return nil, nil, err
	}
	conn, err := eventlog.Connect(server.ClientURL(), "example", nil)
	if err != nil {
		return nil, nil, err
	}
	log, err := eventlog.Open(ctx, conn)
	return log, func() { conn.Close(); server.Stop() }, err
}

// A Spec is all that a read model needs to be built from the log, verified against it, and asked for its
// position. Here it is one of mneme; examples/projection declares one of its own.
func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "readmodel")
	defer func() { _ = os.RemoveAll(dir) }()
	log, stop, err := openLog(ctx, dir)
	if err != nil {
		panic(err)
	}
	defer stop()
	for _, id := range []string{"m1", "m2"} {
		e, err := events.New("conversation-1", "my-agent", id, &events.MessageCreated{MessageID: id, Role: "user", Content: "Hello"})
		if err != nil {
			panic(err)
		}
		if _, err := log.Publish(ctx, "default", e); err != nil {
			panic(err)
		}
	}

	spec, at := readmodel.Graph(), readmodel.Place{Dir: filepath.Join(dir, "models")}
	quiet := readmodel.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if err := spec.Rebuild(ctx, log, at, quiet); err != nil { // Run would follow the log
		panic(err)
	}
	verified, err := spec.Verify(ctx, log, at, quiet)
	fmt.Println("equal:", verified.Equal(), err)
	status, err := spec.Status(ctx, log, at)
	fmt.Println("generation", status[0].Generation, status[0].State, "at", status[0].Checkpoint.Seq, err)
	// Output:
	// equal: true <nil>
	// generation 2 live at 2 <nil>
}
