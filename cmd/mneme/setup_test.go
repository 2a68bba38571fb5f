package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

// server is a running `mneme up`.
type server struct {
	*mnemetest.Server
	t     *testing.T
	ready ready
}

// up starts the program on a directory and waits for its line.
func up(t *testing.T, data string) *server {
	t.Helper()
	return upOn(t, data, "127.0.0.1:0")
}

// upOn is up with NATS on the given address.
func upOn(t *testing.T, data, natsListen string) *server {
	t.Helper()
	s := mnemetest.UpOn(t, data, natsListen)
	return &server{s, t, ready{HTTP: s.HTTP, NATS: s.NATS, Data: s.Data}}
}

func (s *server) kill()     { s.Kill() }
func (s *server) stop() int { return s.Stop() }

// readable starts the program so that it demands tokens, and returns a token with the role read.
func readable(t *testing.T) (s *server, reading string) {
	t.Helper()
	up := mnemetest.UpWith(t, "--data", t.TempDir(), "--tokens")
	s = &server{up, t, ready{HTTP: up.HTTP, NATS: up.NATS, Data: up.Data}}
	created := read[createdToken](s, "tokens", "create", "--tenant", "team-a", "--role", "read")
	require.Eventually(t, func() bool {
		_, _, code := s.mneme("conversations", "list", "--token", created.Token)
		return code == exitDone
	}, mnemetest.Patience, 50*time.Millisecond)
	return s, created.Token
}

// mneme runs a client command against the server.
func (s *server) mneme(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	return mneme(s.t, append(args, "--url", s.HTTP, "--nats-url", s.NATS)...)
}

// read runs a client command that prints JSON and must succeed.
func read[T any](s *server, args ...string) (answer T) {
	s.t.Helper()
	out, stderr, code := s.mneme(append(args, "--json")...)
	require.Zero(s.t, code, "%v: %s", args, stderr)
	require.NoError(s.t, json.Unmarshal([]byte(out), &answer), "%v printed %s", args, out)
	return answer
}

// mneme runs a command. It does so in this process, because most commands cost less than the start of a process.
func mneme(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	if args[0] == "bench" { // It runs its own executable again, which is the test here.
		return mnemeWith(t, nil, args...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
	defer cancel()
	var out, errs strings.Builder
	code = run(ctx, args, &out, &errs)
	return out.String(), errs.String(), code
}

// mnemeWith runs the program as a process of its own, with variables added to the environment.
func mnemeWith(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return mnemetest.Run(t, env, args...)
}

// recording writes a recording in the neutral format: conversations whose turns are a user
// message and some steps, each with a call and its result. The same seed gives the same
// recording. It returns the number of lines.
func recording(t *testing.T, path string, seed uint64, conversations, turns int) int {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	var out bytes.Buffer
	lines := 0
	write := func(line map[string]any) {
		raw, err := json.Marshal(line)
		require.NoError(t, err)
		out.Write(append(raw, '\n'))
		lines++
	}
	words := strings.Fields("the checkpoint is stored in the transaction of batch and a reader sees projection events by sequence")
	text := func(n int) string {
		picked := make([]string, n)
		for i := range picked {
			picked[i] = words[random.IntN(len(words))]
		}
		return strings.Join(picked, " ")
	}
	for c := range conversations {
		id, n := fmt.Sprintf("testagent:%d", c), 0
		line := func(kind, event, parent string, more map[string]any) {
			more["kind"], more["conversation_id"], more["id"], more["seq"] = kind, id, event, n
			more["time"] = time.Date(2026, 1, 1+c, 0, 0, n, 0, time.UTC).Format(time.RFC3339)
			if parent != "" {
				more["parent_ids"] = []string{parent}
			}
			n++
			write(more)
		}
		line("conversation", id, "", map[string]any{"meta": map[string]any{"cwd": "/src"}})
		for turn := range turns {
			line("message", fmt.Sprintf("u%d-%d", c, turn), "", map[string]any{"role": "user", "content": text(12)})
			for step := range 1 + random.IntN(4) {
				key := fmt.Sprintf("%d-%d-%d", c, turn, step)
				line("message", "a"+key, "", map[string]any{"role": "assistant", "content": text(8), "reasoning": text(20)})
				line("tool_call", "t"+key, "a"+key, map[string]any{"tool_name": "Read", "arguments": map[string]any{"file_path": fmt.Sprintf("/src/f%d.go", random.IntN(9))}})
				line("tool_result", "res:t"+key, "t"+key, map[string]any{"tool_name": "Read", "result": text(150), "success": random.IntN(9) > 0})
			}
		}
	}
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o644))
	return lines
}
