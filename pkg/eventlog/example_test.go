package eventlog_test

import (
	"context"
	"fmt"
	"os"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// Publish returns when the event is in the log. A repeat is harmless: it gets the sequence of the first.
// With a NATS server of your own, connect to its URL and leave out embedded.
func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "eventlog")
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := embedded.Start(ctx, embedded.Config{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		panic(err)
	}
	defer server.Stop()
	if _, err := server.Apply(ctx, natsdeploy.Settings{Partitions: 1}); err != nil {
		panic(err)
	}
	conn, err := eventlog.Connect(server.ClientURL(), "example", nil)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	log, err := eventlog.Open(ctx, conn)
	if err != nil {
		panic(err)
	}

	e, err := events.New("conversation-1", "my-agent", "event-1", &events.MessageCreated{MessageID: "m1", Role: "user", Content: "Hello"})
	if err != nil {
		panic(err)
	}
	for range 2 {
		ack, err := log.Publish(ctx, "default", e)
		fmt.Println(ack.Seq, ack.Duplicate, err)
	}
	err = log.Conversation(ctx, "default", "conversation-1", 1, func(m eventlog.Message) error {
		fmt.Println(m.Seq, string(m.Data))
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// 1 false <nil>
	// 1 true <nil>
	// 1 {"message_id":"m1","role":"user","content":"Hello"}
}
