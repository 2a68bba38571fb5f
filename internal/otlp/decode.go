package otlp

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// entry is a span or a log record.
type entry struct {
	attributes
	service   string // service.name of its resource
	scope     string // the library that made it
	name      string // of the span, or of the log record's event
	trace     string
	span      string
	begin     time.Time
	end       time.Time
	failed    bool
	message   string // of a status that says failed
	happening []entry
}

// signal is what a request carries.
type signal string

const (
	traces signal = "traces"
	logs   signal = "logs"
)

// spansOf returns the spans of a request. hexIDs says that it came as JSON, see [idOf].
func spansOf(request *coltracepb.ExportTraceServiceRequest, hexIDs bool) []entry {
	var list []entry
	for _, rs := range request.GetResourceSpans() {
		shared := attributesOf(rs.GetResource().GetAttributes())
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				e := entryOf(shared, ss.GetScope(), s.GetAttributes())
				e.name = s.GetName()
				e.trace, e.span = idOf(s.GetTraceId(), hexIDs), idOf(s.GetSpanId(), hexIDs)
				e.begin, e.end = timeOf(s.GetStartTimeUnixNano()), timeOf(s.GetEndTimeUnixNano())
				e.failed = s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR
				e.message = s.GetStatus().GetMessage()
				for _, h := range s.GetEvents() {
					e.happening = append(e.happening, entry{attributes: attributesOf(h.GetAttributes()), name: h.GetName(), begin: timeOf(h.GetTimeUnixNano())})
				}
				list = append(list, e)
			}
		}
	}
	return list
}

// recordsOf returns the log records of a request.
func recordsOf(request *collogspb.ExportLogsServiceRequest, hexIDs bool) []entry {
	var list []entry
	for _, rl := range request.GetResourceLogs() {
		shared := attributesOf(rl.GetResource().GetAttributes())
		for _, sl := range rl.GetScopeLogs() {
			for _, r := range sl.GetLogRecords() {
				e := entryOf(shared, sl.GetScope(), r.GetAttributes())
				body := valueOf(r.GetBody(), 0)
				named, _ := body.(string)
				e.name = cmp.Or(r.GetEventName(), e.text("event.name"), named)
				if prefix, _, _ := strings.Cut(named, "."); prefix == "claude_code" { // whose event.name lacks the prefix
					e.name = named
				}
				if parts, ok := body.(map[string]any); ok {
					for key, v := range parts {
						if e.attributes[key] == nil {
							e.attributes[key] = v
						}
					}
				}
				e.trace, e.span = idOf(r.GetTraceId(), hexIDs), idOf(r.GetSpanId(), hexIDs)
				e.begin = timeOf(cmp.Or(r.GetTimeUnixNano(), r.GetObservedTimeUnixNano()))
				if at, err := time.Parse(time.RFC3339Nano, e.text("event.timestamp")); err == nil && e.begin.IsZero() {
					e.begin = at
				}
				e.end = e.begin
				list = append(list, e)
			}
		}
	}
	return list
}

func entryOf(shared attributes, scope *commonpb.InstrumentationScope, own []*commonpb.KeyValue) entry {
	e := entry{attributes: attributesOf(own), service: shared.text("service.name"), scope: scope.GetName()}
	for _, key := range []string{sessionID, conversationID} { // a process that is one session says so in its resource
		if e.attributes[key] == nil && shared[key] != nil {
			e.attributes[key] = shared[key]
		}
	}
	return e
}

// idOf returns the id of a trace or span in hex, "" if there is none. In JSON the id is hex, but the decoder of
// protobuf decodes it as base64: encoding it again gives the text that was sent.
func idOf(id []byte, hexIDs bool) string {
	if !slices.ContainsFunc(id, func(b byte) bool { return b != 0 }) {
		return ""
	}
	if !hexIDs {
		return hex.EncodeToString(id)
	}
	sent := base64.StdEncoding.EncodeToString(id)
	raw, err := hex.DecodeString(sent)
	if err != nil { // it was base64 after all, as some exporters send it
		return hex.EncodeToString(id)
	}
	if !slices.ContainsFunc(raw, func(b byte) bool { return b != 0 }) {
		return ""
	}
	return hex.EncodeToString(raw)
}

// timeOf returns a time, zero if it is unknown or after the year 2262, beyond what a signed number of nanoseconds
// holds.
func timeOf(nanoseconds uint64) time.Time {
	if nanoseconds == 0 || nanoseconds > 1<<63-1 {
		return time.Time{}
	}
	return time.Unix(0, int64(nanoseconds)).UTC()
}
