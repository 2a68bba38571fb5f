package bench

import (
	"encoding/json"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// slowModel is a server with OpenAI's chat completions that answers each call with the same summary
// after a delay. To its clients it is a model of that speed.
type slowModel struct {
	url   string
	calls atomic.Int64
	close func() error
}

func newSlowModel(delay time.Duration) (*slowModel, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &slowModel{url: "http://" + listener.Addr().String() + "/v1"}
	draft := `{"conversation": "They worked.", "actions": "", "findings": [], "topics": []}`
	answer, err := json.Marshal(map[string]any{
		"id": "1", "object": "chat.completion", "created": 1, "model": "slow",
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": draft}}},
		"usage":   map[string]any{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
	})
	if err != nil {
		return nil, err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.calls.Add(1)
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	})}
	m.close = server.Close
	go func() { _ = server.Serve(listener) }()
	return m, nil
}
