package importer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/transcript"
)

// BenchmarkImportingAgain imports a known transcript of 5 MB and 5,000 lines as package capture does after
// each change. The lookup asks the API of the same process, as mneme import does.
func BenchmarkImportingAgain(b *testing.B) {
	i, err := instance.Start(b.Context(), instance.Config{
		Data: b.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, i.Close()) })
	var text bytes.Buffer
	const lines = 5000
	for n := range lines {
		said := strings.Repeat("The parser skips blank lines. ", 1+n%58)
		fmt.Fprintf(&text, `{"type":"user","uuid":"u%d","sessionId":"s","timestamp":"2026-03-02T10:00:00Z","message":{"content":"%s"}}`+"\n", n, said)
	}
	path := filepath.Join(b.TempDir(), "11111111-2222-4333-8444-555555555555.jsonl")
	require.NoError(b, os.WriteFile(path, text.Bytes(), 0o644))
	bring := func() importer.Report {
		report, err := importer.Import(b.Context(), i.Log, []transcript.File{{Path: path}}, importer.Options{
			Tenant: "default", Format: "claude-code", Lookup: func(ctx context.Context, list []events.Event) ([]importer.Known, error) {
				return lookup(ctx, i.HTTPURL(), list)
			},
		})
		require.NoError(b, err)
		return report
	}
	first := bring()
	for applied := false; !applied; time.Sleep(10 * time.Millisecond) {
		applied = true
		for _, s := range i.Status() {
			applied = applied && s.Checkpoint.Seq >= first.LastSeq
		}
	}
	b.SetBytes(int64(text.Len()))
	cpu := mnemetest.ReportCPU(b)
	b.ResetTimer()
	for range b.N {
		require.Equal(b, importer.Report{Read: lines + 1, Duplicate: lines + 1, Conversations: 1}, bring())
	}
	cpu()
}

func lookup(ctx context.Context, api string, list []events.Event) ([]importer.Known, error) {
	asked := make([]map[string]string, len(list))
	for i, e := range list {
		asked[i] = map[string]string{"conversation": e.Subject, "source": e.Source, "id": e.ID}
	}
	body, err := json.Marshal(map[string]any{"events": asked})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, api+"/v1/events/lookup", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("lookup: %s", response.Status)
	}
	var answer struct{ Events []importer.Known }
	err = json.NewDecoder(response.Body).Decode(&answer)
	return answer.Events, err
}
