package instance_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/otlp"
	"mneme.dev/mneme/internal/redact"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/testdata"
)

// exporting is mneme in this process, which answers exporters.
type exporting struct {
	*testing.T
	*instance.Instance
	token string
}

func startExporting(t *testing.T, c instance.Config) *exporting {
	t.Helper()
	if c.Data == "" {
		c.Data = t.TempDir()
	}
	c.Listen, c.NATSListen, c.OTLP = "127.0.0.1:0", "127.0.0.1:0", []string{"127.0.0.1:0"}
	c.Redact, c.Logger = redact.Default(), slog.New(slog.DiscardHandler)
	i, err := instance.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	return &exporting{T: t, Instance: i}
}

// post sends a request of OTLP, and returns the status and the answer.
func (r *exporting) post(path, contentType string, body []byte, headers ...string) (int, string) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, r.OTLPURLs()[0]+path, bytes.NewReader(body))
	require.NoError(r, err)
	request.Header.Set("Content-Type", contentType)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(r, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(r, err)
	return answer.StatusCode, string(text)
}

// get reads a resource of the API once everything is applied.
func (r *exporting) get(path string, into any) {
	r.Helper()
	state, err := r.Log.State(mnemetest.Context(r))
	require.NoError(r, err)
	require.Eventually(r, func() bool {
		for _, s := range r.Status() {
			if s.Checkpoint.Seq < state.Head {
				return false
			}
		}
		return true
	}, patience, 5*time.Millisecond)
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.HTTPURL()+path, nil)
	require.NoError(r, err)
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(r, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(r, err)
	require.Equal(r, http.StatusOK, answer.StatusCode, "%s", text)
	require.NoError(r, json.Unmarshal(text, into))
}

func (r *exporting) status() *httpapi.Exported {
	var s httpapi.Status
	r.get("/v1/status", &s)
	return s.OTLP
}

type messages struct {
	Messages []struct{ ID, Role, Content string }
}

func (r *exporting) said(conversation string) []string {
	r.Helper()
	var list messages
	r.get("/v1/conversations/"+url.PathEscape(conversation)+"/messages?limit=100", &list)
	var out []string
	for _, m := range list.Messages {
		out = append(out, m.Role+": "+m.Content)
	}
	slices.Reverse(out) // the newest comes first
	return out
}

// span returns a span of a chat as JSON of OTLP.
func span(attributes ...map[string]any) map[string]any {
	var list []map[string]any
	for _, a := range attributes {
		for key, v := range a {
			list = append(list, map[string]any{"key": key, "value": anyValue(v)})
		}
	}
	return map[string]any{
		"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "chat", "kind": 3,
		"startTimeUnixNano": "1767603600000000000", "endTimeUnixNano": "1767603601000000000", "attributes": list,
	}
}

func anyValue(v any) map[string]any {
	switch v := v.(type) {
	case string:
		return map[string]any{"stringValue": v}
	case bool:
		return map[string]any{"boolValue": v}
	case float64:
		return map[string]any{"doubleValue": v}
	case []any:
		values := []any{}
		for _, one := range v {
			values = append(values, anyValue(one))
		}
		return map[string]any{"arrayValue": map[string]any{"values": values}}
	case map[string]any:
		values := []any{}
		for key, one := range v {
			values = append(values, map[string]any{"key": key, "value": anyValue(one)})
		}
		return map[string]any{"kvlistValue": map[string]any{"values": values}}
	}
	return map[string]any{}
}

func request(t *testing.T, spans ...map[string]any) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{
		"resource":   map[string]any{"attributes": []any{map[string]any{"key": "service.name", "value": anyValue("weather-bot")}}},
		"scopeSpans": []any{map[string]any{"scope": map[string]any{"name": "test.library"}, "spans": spans}},
	}}})
	require.NoError(t, err)
	return body
}

func chat(session string, texts ...string) map[string]any {
	var list []any
	for i, text := range texts {
		list = append(list, map[string]any{"role": []string{"user", "assistant"}[i%2], "parts": []any{map[string]any{"type": "text", "content": text}}})
	}
	last := len(list) - 1
	input, _ := json.Marshal(list[:last])
	output, _ := json.Marshal(list[last:])
	a := map[string]any{"gen_ai.operation.name": "chat", "gen_ai.input.messages": string(input), "gen_ai.output.messages": string(output)}
	if session != "" {
		a["gen_ai.conversation.id"] = session
	}
	return a
}

func TestTheRecordedSpansBecomeTheirConversation(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(testdata.Dir(t), "otel", "genai_spans.jsonl"))
	require.NoError(t, err)
	var spans []map[string]any
	contents, calls, results := map[string]bool{}, map[string]bool{}, map[string]bool{} // an independent reading
	for i, line := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		var s struct {
			Name, Status string
			Attributes   map[string]any
		}
		require.NoError(t, json.Unmarshal(line, &s))
		one := span(s.Attributes)
		one["name"], one["spanId"] = s.Name, fmt.Sprintf("%016x", i+1)
		if s.Status == "ERROR" {
			one["status"] = map[string]any{"code": 2}
		}
		one["endTimeUnixNano"] = fmt.Sprint(1767603601000000000 + i)
		spans = append(spans, one)
		for _, key := range []string{"gen_ai.input.messages", "gen_ai.output.messages"} {
			list, _ := s.Attributes[key].([]any)
			for _, m := range list {
				parts, _ := m.(map[string]any)["parts"].([]any)
				for _, p := range parts {
					part := p.(map[string]any)
					switch part["type"] {
					case "text":
						contents[fmt.Sprint(m.(map[string]any)["role"], ": ", part["content"])] = true
					case "tool_call":
						calls[part["id"].(string)] = true
					case "tool_call_response":
						results[part["id"].(string)] = true
					}
				}
			}
		}
		if id, ok := s.Attributes["gen_ai.tool.call.id"].(string); ok {
			calls[id], results[id] = true, true
		}
	}
	r := startExporting(t, instance.Config{})
	code, answer := r.post("/v1/traces", "application/json", request(t, spans...))
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "{}", answer)
	const conversation = "otel:conv_5j66UpCpwteGg4YSxUnt7lPY"
	var c struct {
		Agent           string
		ToolCallCount   int `json:"tool_call_count"`
		ToolResultCount int `json:"tool_result_count"`
	}
	r.get("/v1/conversations/"+conversation, &c)
	require.Equal(t, "weather-bot", c.Agent)
	require.Equal(t, len(calls), c.ToolCallCount)
	require.Equal(t, len(results), c.ToolResultCount)
	said := slices.DeleteFunc(r.said(conversation), func(s string) bool { return s == "assistant: " }) // the one that only calls
	require.Len(t, said, len(contents))
	for _, s := range said {
		require.True(t, contents[s], s)
	}
	before := r.status()
	require.EqualValues(t, 4, before.Recorded)
	require.Equal(t, map[string]uint64{"no content of a conversation: test.library": 2}, before.LeftOut, "spans of a memory")

	_, _ = r.post("/v1/traces", "application/json", request(t, spans...))
	again := r.status()
	require.Equal(t, before.Published, again.Published)
	require.EqualValues(t, 4, again.Known)
}

func TestExportersOfTheSDKAreAnsweredOverHTTPAndGRPCOnOnePort(t *testing.T) {
	r := startExporting(t, instance.Config{})
	endpoint := strings.TrimPrefix(r.OTLPURLs()[0], "http://")
	for name, open := range map[string]func() (*otlptrace.Exporter, error){
		"http": func() (*otlptrace.Exporter, error) {
			return otlptracehttp.New(t.Context(), otlptracehttp.WithEndpoint(endpoint), otlptracehttp.WithInsecure(), otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
		},
		"grpc": func() (*otlptrace.Exporter, error) {
			return otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(endpoint), otlptracegrpc.WithInsecure(), otlptracegrpc.WithCompressor("gzip"))
		},
	} {
		exporter, err := open()
		require.NoError(t, err)
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
		ctx, agent := provider.Tracer("test").Start(t.Context(), "invoke_agent")
		_, call := provider.Tracer("test").Start(ctx, "chat")
		var list []attribute.KeyValue
		for key, v := range chat("", "Hello over "+name, "Hi.") {
			list = append(list, attribute.String(key, v.(string)))
		}
		call.SetAttributes(list...)
		call.End()
		agent.SetAttributes(attribute.String("gen_ai.operation.name", "invoke_agent"))
		agent.End()
		require.NoError(t, provider.Shutdown(context.WithoutCancel(t.Context())))
		// Without a session, the trace is the conversation.
		require.Equal(t, []string{"user: Hello over " + name, "assistant: Hi."}, r.said("otel:"+call.SpanContext().TraceID().String()), name)
	}
}

func TestAConversationWithoutASessionGoesOnInItsNextTrace(t *testing.T) {
	r := startExporting(t, instance.Config{})
	for i, texts := range [][]string{{"A", "B"}, {"A", "B", "C", "D"}, {"X", "Y"}} {
		one := span(chat("", texts...))
		one["traceId"] = fmt.Sprintf("%032x", i+1)
		code, answer := r.post("/v1/traces", "application/json", request(t, one))
		require.Equal(t, http.StatusOK, code, answer)
	}
	require.Equal(t, []string{"user: A", "assistant: B", "user: C", "assistant: D"}, r.said(fmt.Sprintf("otel:%032x", 1)))
	require.Equal(t, []string{"user: X", "assistant: Y"}, r.said(fmt.Sprintf("otel:%032x", 3)))
}

func TestAfterARestartOnlyWhatIsNewIsRecorded(t *testing.T) {
	data := t.TempDir()
	r := startExporting(t, instance.Config{Data: data})
	_, _ = r.post("/v1/traces", "application/json", request(t, span(chat("s", "A", "B", "C", "D"))))
	require.Len(t, r.said("otel:s"), 4)
	require.NoError(t, r.Close())
	r = startExporting(t, instance.Config{Data: data})
	_, _ = r.post("/v1/traces", "application/json", request(t, span(chat("s", "C", "D", "E", "F")))) // it leaves out the oldest
	require.Equal(t, []string{"user: A", "assistant: B", "user: C", "assistant: D", "user: E", "assistant: F"}, r.said("otel:s"))

	require.NoError(t, r.Close())
	require.NoError(t, os.WriteFile(filepath.Join(data, "otlp.json"), []byte("{"), 0o600))
	r = startExporting(t, instance.Config{Data: data})
	_, _ = r.post("/v1/traces", "application/json", request(t, span(chat("s", "A", "B", "C", "D")))) // whole, so the log knows it
	require.Zero(t, r.status().Published)
	require.Equal(t, []string{"user: A", "assistant: B", "user: C", "assistant: D", "user: E", "assistant: F"}, r.said("otel:s"))
}

func TestFramesAndSecretsDoNotReachTheLog(t *testing.T) {
	r := startExporting(t, instance.Config{})
	secret := "ghp" + "_x7Q2mR9tLw4ZkV8nBc3Yd6HfJs1PaEoU5iGq"
	_, _ = r.post("/v1/traces", "application/json", request(t, span(chat("s", `Deploy with `+secret+`.<mneme-context id="c1" seq="1">recalled</mneme-context>`, "Done."))))
	require.Equal(t, []string{"user: Deploy with [redacted:github-token].", "assistant: Done."}, r.said("otel:s"))
}

func TestASessionWhoseTranscriptIsRecordedIsLeftOut(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("CLAUDE_CONFIG_DIR", folder)
	r := startExporting(t, instance.Config{Capture: []string{"claude-code"}})
	begins := func(session string) (transcript string) {
		transcript = filepath.Join(folder, "projects", "-repo", session+".jsonl")
		body := fmt.Sprintf(`{"hook_event_name":"SessionStart","session_id":%q,"cwd":"/repo","transcript_path":%q}`, session, transcript)
		answer, err := http.Post(r.HTTPURL()+"/v1/hooks/claude-code", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
		return transcript
	}
	transcript := begins("short") // its records arrive before its transcript has a message
	require.NoError(t, os.MkdirAll(filepath.Dir(transcript), 0o700))
	require.NoError(t, os.WriteFile(transcript, []byte(`{"type":"mode","mode":"normal","sessionId":"short"}`+"\n"), 0o600))
	begins("s2") // its transcript is not on this machine
	started := `{"specversion":"1.0","type":"dev.mneme.conversation.started.v1","source":"import/claude_code","id":"claude_code:s1","subject":"claude_code:s1","data":{}}`
	answer, err := http.Post(r.HTTPURL()+"/v1/events", "application/cloudevents+json", strings.NewReader(started))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusCreated, answer.StatusCode)
	_ = r.status() // it is applied
	record := func(session string) string {
		return fmt.Sprintf(`{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"claude-code"}}]},"scopeLogs":[{"scope":{"name":"com.anthropic.claude_code.events"},"logRecords":[
			{"timeUnixNano":"1767603600000000000","body":{"stringValue":"claude_code.user_prompt"},"attributes":[{"key":"event.name","value":{"stringValue":"user_prompt"}},{"key":"session.id","value":{"stringValue":%q}},{"key":"prompt.id","value":{"stringValue":"p1"}},{"key":"prompt","value":{"stringValue":"Hello"}}]},
			{"timeUnixNano":"1767603601000000000","body":{"stringValue":"claude_code.tool_result"},"attributes":[{"key":"session.id","value":{"stringValue":%[1]q}},{"key":"tool_use_id","value":{"stringValue":"toolu_1"}},{"key":"tool_name","value":{"stringValue":"Bash"}},{"key":"success","value":{"stringValue":"true"}},{"key":"tool_input","value":{"stringValue":"{\"command\":\"ls\"}"}}]}
		]}]}]}`, session)
	}
	for _, session := range []string{"s1", "s2", "short"} {
		code, text := r.post("/v1/logs", "application/json", []byte(record(session)))
		require.Equal(t, http.StatusOK, code, text)
	}
	require.Equal(t, []string{"user: Hello"}, r.said("otel:s2"))
	s := r.status()
	require.EqualValues(t, 4, s.LeftOut["recorded from its transcript: com.anthropic.claude_code.events"])
	require.EqualValues(t, 4, s.Published, "the start, the prompt, the call and its result of s2")

	require.NoError(t, os.Remove(transcript)) // before anything in it was worth an event
	code, text := r.post("/v1/logs", "application/json", []byte(record("short")))
	require.Equal(t, http.StatusOK, code, text)
	require.Equal(t, []string{"user: Hello"}, r.said("otel:short"))
}

func TestBadRequestsAreRefusedWithoutARetry(t *testing.T) {
	r := startExporting(t, instance.Config{})
	good := request(t, span(chat("s", "A", "B")))
	message := &coltracepb.ExportTraceServiceRequest{}
	require.NoError(t, protojson.Unmarshal(good, message))
	binary, err := proto.Marshal(message)
	require.NoError(t, err)
	pack := func(b []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err := w.Write(b)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return out.Bytes()
	}
	for name, c := range map[string]struct {
		path, kind, coding string
		body               []byte
		status             int
		says               string
	}{
		"truncated protobuf":  {"/v1/traces", "application/x-protobuf", "", binary[:len(binary)-3], 400, "not an OTLP request"},
		"no JSON":             {"/v1/logs", "application/json", "", []byte("{"), 400, "not an OTLP request"},
		"truncated gzip":      {"/v1/traces", "application/json", "gzip", pack(good)[:20], 400, "incomplete or damaged"},
		"no gzip":             {"/v1/traces", "application/json", "gzip", good, 400, "incomplete or damaged"},
		"a gzip bomb":         {"/v1/traces", "application/json", "gzip", pack(make([]byte, otlp.MaxBytes+1)), 413, "at most 16 MiB"},
		"another coding":      {"/v1/traces", "application/json", "zstd", good, 415, "Content-Encoding"},
		"another type":        {"/v1/traces", "text/plain", "", good, 415, "Content-Type"},
		"another path":        {"/v1/profiles", "application/json", "", []byte("{}"), 404, "/v1/traces and /v1/logs"},
		"a tenant of no name": {"/v1/traces", "application/json", "", good, 400, "mneme-tenant"},
	} {
		headers := []string{"Content-Encoding", c.coding}
		if strings.HasPrefix(name, "a tenant") {
			headers = append(headers, "mneme-tenant", strings.Repeat("t", 200))
		}
		status, text := r.post(c.path, c.kind, c.body, headers...)
		require.Equal(t, c.status, status, "%s: %s", name, text)
		require.Contains(t, text, c.says, name)
	}
	require.Zero(t, r.status().Published)
	code, _ := r.post("/v1/traces", "application/x-protobuf", pack(binary), "Content-Encoding", "gzip")
	require.Equal(t, http.StatusOK, code)
	require.Len(t, r.said("otel:s"), 2)
}

// Gemini CLI sends them with its log records, and shows its user what is refused.
func TestMetricsAreAcceptedAndDropped(t *testing.T) {
	r := startExporting(t, instance.Config{})
	for _, kind := range []string{"application/json", "application/x-protobuf"} {
		status, text := r.post("/v1/metrics", kind, []byte("{}"))
		require.Equal(t, http.StatusOK, status, text)
	}
	conn, err := grpc.NewClient(strings.TrimPrefix(r.OTLPURLs()[0], "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = colmetricspb.NewMetricsServiceClient(conn).Export(t.Context(), &colmetricspb.ExportMetricsServiceRequest{})
	require.NoError(t, err)
	require.Zero(t, r.status().Published)
}

func TestWhatCannotBeRecordedIsTheOnlyThingRefused(t *testing.T) {
	r := startExporting(t, instance.Config{})
	nowhere := span(chat("", "A", "B"))
	delete(nowhere, "traceId")
	cut := chat("s", "C", "D")
	cut["gen_ai.input.messages"] = cut["gen_ai.input.messages"].(string)[:20]
	huge := chat("large", strings.Repeat("x", 8<<20), "E")
	code, answer := r.post("/v1/traces", "application/json", request(t, span(chat("s", "F", "G")), nowhere, span(cut), span(huge), span(map[string]any{"http.method": "GET"})))
	require.Equal(t, http.StatusOK, code, answer)
	var out struct {
		PartialSuccess struct{ RejectedSpans, ErrorMessage string }
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &out))
	require.Equal(t, "3", out.PartialSuccess.RejectedSpans)
	require.Contains(t, out.PartialSuccess.ErrorMessage, "set gen_ai.conversation.id or session.id")
	require.Equal(t, []string{"user: F", "assistant: G"}, r.said("otel:s"))
	s := r.status()
	require.EqualValues(t, 3, s.Refused)
	require.Equal(t, map[string]uint64{"unknown: test.library": 1}, s.LeftOut)
	require.Contains(t, s.LastError, "set gen_ai.conversation.id")
}

func TestExportersNeedATokenThatWrites(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	store := access.NewFile(file)
	issue := func(rights access.Rights) string {
		token, record, err := access.Issue(rights, "test", time.Now(), time.Hour)
		require.NoError(t, err)
		require.NoError(t, store.Add(t.Context(), record))
		return token
	}
	writer, reader := issue(access.Rights{Tenant: "acme", Role: access.Write}), issue(access.Rights{Tenant: "acme", Role: access.Read})
	everyone := issue(access.Rights{AllTenants: true, Role: access.Admin})
	r := startExporting(t, instance.Config{Access: settings.Access{TokensFile: file}})
	body := request(t, span(chat("s", "A", "B")))
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{nil, 401}, {[]string{"Authorization", "Bearer wrong"}, 401}, {[]string{"Authorization", "Bearer " + reader}, 403},
		{[]string{"Authorization", "Bearer " + writer, otlp.TenantHeader, "other"}, 403}, {[]string{"Authorization", "Bearer " + writer}, 200},
		{[]string{"Authorization", "Bearer " + everyone, otlp.TenantHeader, "other"}, 200},
	} {
		code, answer := r.post("/v1/traces", "application/json", body, c.headers...)
		require.Equal(t, c.status, code, "%v: %s", c.headers, answer)
	}
	endpoint := strings.TrimPrefix(r.OTLPURLs()[0], "http://")
	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(endpoint), otlptracegrpc.WithInsecure())
	require.NoError(t, err)
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(nil))
	_, one := provider.Tracer("test").Start(t.Context(), "chat")
	err = exporter.ExportSpans(t.Context(), []sdktrace.ReadOnlySpan{one.(sdktrace.ReadOnlySpan)})
	require.ErrorContains(t, err, "Unauthenticated")
	require.NoError(t, exporter.Shutdown(t.Context()))
	r.token = everyone
	for _, tenant := range []string{"acme", "other"} {
		var list messages
		r.get("/v1/conversations/otel:s/messages?tenant="+tenant, &list)
		require.Len(t, list.Messages, 2, tenant)
	}
}

func TestOffLoopbackATokenIsDemanded(t *testing.T) {
	_, err := instance.Start(t.Context(), instance.Config{Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", OTLP: []string{"0.0.0.0:0"}, Logger: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "--otlp-listen")
	require.ErrorContains(t, err, "MNEME_TOKENS=true")
}

// Gemini CLI and Qwen Code have the conventions' spans, in which only the service says which agent it is.
func TestSpansOfASessionWhoseTranscriptIsRecordedAreLeftOut(t *testing.T) {
	for service, agent := range map[string]string{"gemini-cli": "gemini_cli", "qwen-code": "qwen_code"} {
		r := startExporting(t, instance.Config{})
		started := fmt.Sprintf(`{"specversion":"1.0","type":"dev.mneme.conversation.started.v1","source":"import/%[1]s","id":"%[1]s:s1","subject":"%[1]s:s1","data":{}}`, agent)
		answer, err := http.Post(r.HTTPURL()+"/v1/events", "application/cloudevents+json", strings.NewReader(started))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusCreated, answer.StatusCode)
		_ = r.status() // it is applied
		for _, session := range []string{"s1", "s2"} {
			spans := bytes.Replace(request(t, span(chat(session, "Hello", "Hi"))), []byte("weather-bot"), []byte(service), 1)
			code, text := r.post("/v1/traces", "application/json", spans)
			require.Equal(t, http.StatusOK, code, text)
		}
		require.Equal(t, []string{"user: Hello", "assistant: Hi"}, r.said("otel:s2"))
		require.EqualValues(t, 1, r.status().LeftOut["recorded from its transcript: test.library"], service)
	}
}
