package events_test

import (
	"errors"
	"fmt"

	"mneme.dev/mneme/events"
)

// An event is made from a payload, travels as a NATS message, and is decoded and checked at the other
// end.
func Example() {
	e, err := events.New("conversation-1", "my-agent", "event-1", &events.MessageCreated{MessageID: "m1", Role: "user", Content: "Hello"})
	if err != nil {
		panic(err)
	}
	header, data := events.EncodeMessage(e)

	received, err := events.DecodeMessage(header, data)
	if err != nil {
		panic(err)
	}
	recorded, err := events.Record(received)
	if err != nil {
		panic(err)
	}
	message := recorded.Payload.(*events.MessageCreated)
	fmt.Println(recorded.Type, message.Role, message.Content)
	// Output: dev.mneme.message.created.v1 user Hello
}

// A refusal names the field and the reason.
func ExampleInvalid() {
	_, err := events.New("conversation-1", "my-agent", "event-1", &events.MessageCreated{MessageID: "m1", Role: "robot"})
	fmt.Println(errors.Is(err, events.ErrInvalid))
	fmt.Println(err)
	// Output:
	// true
	// data.role: "robot" is none of ["user" "assistant" "system"]
}

// An event type of another project needs no registration. Projections that do not know it skip it.
func ExampleForeign() {
	e, err := events.New("conversation-1", "my-ci", "build-7", &events.Foreign{Type: "com.example.build.finished", Data: []byte(`{"ok":true}`)})
	if err != nil {
		panic(err)
	}
	fmt.Println(e.Type, events.IsForeign(e.Type), events.IsForeign("dev.mneme.build.finished"))
	// Output: com.example.build.finished true false
}
