// An agent that records itself and remembers: go run ./examples/start CONVERSATION QUESTION
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log"
	"os"
	"time"

	"mneme.dev/mneme/examples/scout/agent"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: go run ./examples/start CONVERSATION QUESTION")
	}
	events, err := agent.Connect(context.Background(), cmp.Or(os.Getenv("MNEME_NATS_URL"), "nats://127.0.0.1:4222"))
	if err != nil {
		log.Fatal(err)
	}
	defer events.Conn().Close()
	text, err := answer(context.Background(), agent.NewRecorder(events, "default", os.Args[1]), os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
}

func answer(ctx context.Context, recorder *agent.Recorder, question string) (string, error) {
	seq, err := recorder.User(ctx, question)
	for step := 0; step < 10 && err == nil; step++ {
		// What the model sees is what mneme chooses: this turn, and what matters of all the turns before.
		messages, err := readContext(ctx, recorder.Conversation, seq)
		if err != nil {
			return "", err
		}
		message, err := callModel(ctx, messages)
		if err != nil {
			return "", err
		}
		if seq, err = recorder.Assistant(ctx, message.Content, ""); err != nil || len(message.ToolCalls) == 0 {
			return message.Content, err
		}
		for i, call := range message.ToolCalls {
			id, name, arguments := fmt.Sprintf("%d-%d", seq, i), call.Function.Name, json.RawMessage(call.Function.Arguments)
			if _, err := recorder.Call(ctx, id, name, arguments); err != nil {
				return "", err
			}
			began := time.Now()
			result, failure := runTool(name, arguments)
			if seq, err = recorder.Return(ctx, id, result, failure, time.Since(began)); err != nil {
				return "", err
			}
		}
	}
	return "I found no answer in 10 steps.", err
}

// runTool returns a result, or what went wrong, which the model reads.
func runTool(name string, arguments json.RawMessage) (any, error) {
	var given struct{ Folder string }
	if err := json.Unmarshal(arguments, &given); err != nil || name != "list_files" {
		return nil, fmt.Errorf("there is no tool %s that takes %s", name, arguments)
	}
	root, err := os.OpenRoot(".") // nothing outside of the current folder
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	names := []string{}
	files, err := fs.ReadDir(root.FS(), given.Folder)
	for _, file := range files {
		names = append(names, file.Name())
	}
	return names, err
}
