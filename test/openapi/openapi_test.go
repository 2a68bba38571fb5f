// Package openapi tests the running program against its own OpenAPI document with schemathesis. It
// makes valid and invalid requests from the document, and uses values from answers in further
// requests. `make test-all` runs it.
package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestTheServerMatchesItsDocument(t *testing.T) {
	if !mnemetest.All {
		t.Skip("takes minutes: make test-all")
	}
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	fill(t, s)

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, abs(t, "../../.cache/schemathesis/bin/schemathesis"),
		"--config-file", abs(t, "schemathesis.toml"), "run", s.HTTP+"/openapi.json", "--no-color")
	cmd.Dir = t.TempDir() // where it would remember things for the next run
	cmd.Env = append(os.Environ(), "SCHEMATHESIS_HOOKS="+abs(t, "checks.py"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, ctx.Err(), "it takes too long:\n%s", out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out) // lines may be too long for require
	}
	t.Logf("%s", out)

	// Whatever was sent, the read models must match the log.
	var verified struct{ Equal bool }
	require.NoError(t, json.Unmarshal(post(t, s.HTTP+"/v1/verify", "", nil), &verified))
	require.True(t, verified.Equal)
	s.Kill()
	require.NotContains(t, s.Stderr(), "request failed")
	require.NotContains(t, s.Stderr(), "panic")
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	return path
}

// fill gives the server conversations to answer about: transcripts, and a result so long that the
// read model keeps only part of it.
func fill(t *testing.T, s *mnemetest.Server) {
	t.Helper()
	program, err := mnemetest.Binary()
	require.NoError(t, err)
	out, err := exec.Command(program, "import", "../../internal/transcript/testdata", "--wait", "--url", s.HTTP, "--nats-url", s.NATS).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for id, payload := range map[string]events.Payload{
		"call":   &events.ToolCalled{ToolCallID: "t1", ToolName: "Read", Arguments: json.RawMessage(`{"file_path": "/src/long.go"}`)},
		"result": &events.ToolReturned{ToolCallID: "t1", Result: events.TextResult(strings.Repeat("a long line\n", 10_000))},
	} {
		e, err := events.New("long", "test", id, payload)
		require.NoError(t, err)
		body, err := events.EncodeStructured(e)
		require.NoError(t, err)
		post(t, s.HTTP+"/v1/events", events.ContentTypeEvent, body)
	}
}

func post(t *testing.T, url, contentType string, body []byte) []byte {
	t.Helper()
	response, err := http.Post(url, contentType, bytes.NewReader(body))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	var answer bytes.Buffer
	_, err = answer.ReadFrom(response.Body)
	require.NoError(t, err)
	require.Less(t, response.StatusCode, 300, "%s", &answer)
	return answer.Bytes()
}
