// Package hostile attacks a running mneme as a web page, a tool's result, an agent, an operator's
// mistake or a failing disk would. Each test states what must hold and fails without its defense.
// docs/security.md lists the promises and names these tests.
package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

// How long something may take on a busy machine, and how often it is checked.
const (
	patience = mnemetest.Patience
	tick     = 20 * time.Millisecond
)

// up starts `mneme up` on an empty directory.
func up(t *testing.T, flags ...string) *mnemetest.Server {
	t.Helper()
	return mnemetest.UpWith(t, append([]string{"--data", t.TempDir()}, flags...)...)
}

// answer is an answer of the API.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// do sends a request to the API. edit, if not nil, changes it before it is sent.
func do(t *testing.T, method, url string, body []byte, edit func(*http.Request)) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	require.NoError(t, err)
	if edit != nil {
		edit(request)
	}
	client := http.Client{Timeout: patience}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{response.StatusCode, response.Header, raw}
}

// publish posts one event over HTTP. kind is the type without its prefix and version, such as
// "message.created".
func publish(t *testing.T, s *mnemetest.Server, conversation, id, kind string, data map[string]any) answer {
	t.Helper()
	event, err := json.Marshal(map[string]any{
		"specversion": "1.0", "type": fmt.Sprintf("dev.mneme.%s.v1", kind), "source": "test", "id": id, "subject": conversation, "data": data,
	})
	require.NoError(t, err)
	return do(t, http.MethodPost, s.HTTP+"/v1/events", event, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/cloudevents+json")
	})
}
