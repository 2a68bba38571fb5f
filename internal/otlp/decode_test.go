package otlp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const spanAsJSON = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"bot"}},{"key":"session.id","value":{"stringValue":"s"}}]},
	"scopeSpans":[{"scope":{"name":"lib"},"spans":[{"traceId":"0AF7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"chat","startTimeUnixNano":"1","endTimeUnixNano":2,"status":{"code":2,"message":"bad"},"unknownMember":1,
	"attributes":[{"key":"n","value":{"intValue":"7"}},{"key":"list","value":{"arrayValue":{"values":[{"stringValue":"a"}]}}}],"events":[{"name":"exception","attributes":[]}]}]}]}]}`

func TestASpanHasTheSameIDsInJSONAndInProtobuf(t *testing.T) {
	request := &coltracepb.ExportTraceServiceRequest{}
	require.NoError(t, decode([]byte(spanAsJSON), true, request))
	list := spansOf(request, true)
	require.Len(t, list, 1)
	e := list[0]
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", e.trace)
	require.Equal(t, "b7ad6b7169203331", e.span)
	require.Equal(t, "bot lib chat bad", e.service+" "+e.scope+" "+e.name+" "+e.message)
	require.Equal(t, "7", e.text("n"))
	require.JSONEq(t, `["a"]`, string(e.raw("list")))
	require.Equal(t, "s", keyOf(&e), "of the resource")

	span := request.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0]
	span.TraceId, span.SpanId = []byte{0x0a, 0xf7, 15: 0x9c}, []byte{0xb7, 7: 0x31}
	binary, err := proto.Marshal(request)
	require.NoError(t, err)
	again := &coltracepb.ExportTraceServiceRequest{}
	require.NoError(t, decode(binary, false, again))
	require.Equal(t, "0af7000000000000000000000000009c", spansOf(again, false)[0].trace)
	span.TraceId = make([]byte, 16)
	require.Empty(t, spansOf(request, false)[0].trace, "zeros are no id")
}

// Eight million empty spans fit into a request, and would take 4 GB.
func TestARequestOfCountlessPartsIsRefusedBeforeItIsDecoded(t *testing.T) {
	list := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("{},", n), ",") + "]" }
	inJSON := func(n int) []byte { return []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":` + list(n) + `}]}]}`) }
	inBinary := func(n int) []byte {
		spans := strings.Repeat(string(protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), nil)), n)
		scope := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), []byte(spans))
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), scope)
	}
	for n, want := range map[int]error{maxParts / 2: nil, maxParts + 1: errParts} {
		request := &coltracepb.ExportTraceServiceRequest{}
		for name, err := range map[string]error{
			"JSON": decode(inJSON(n), true, request), "protobuf": decode(inBinary(n), false, request),
			"gRPC": codec{encoding.GetCodecV2("proto")}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(inBinary(n))}, request),
		} {
			if want == nil {
				require.NoError(t, err, name)
				require.Len(t, request.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans(), n)
				continue
			}
			require.ErrorContains(t, err, want.Error(), name)
		}
	}
	require.NoError(t, decode([]byte(`{"x":"`+strings.Repeat(`{\"`, maxParts+1)+`"}`), true, &coltracepb.ExportTraceServiceRequest{}), "braces in a text")
	deep := protowire.AppendTag(nil, 5, protowire.BytesType)
	for range 20_000 { // arrays of arrays
		deep = protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), deep))
	}
	require.Error(t, decode(deep, false, &commonpb.AnyValue{}))
}

// FuzzRequests reads requests as a server does.
func FuzzRequests(f *testing.F) {
	f.Add([]byte(spanAsJSON), true)
	f.Add([]byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"claude_code.user_prompt"},"attributes":[{"key":"session.id","value":{"stringValue":"s"}},{"key":"prompt","value":{"stringValue":"A"}}]}]}]}]}`), true)
	request := &coltracepb.ExportTraceServiceRequest{}
	require.NoError(f, decode([]byte(spanAsJSON), true, request))
	binary, err := proto.Marshal(request)
	require.NoError(f, err)
	f.Add(binary, false)
	f.Fuzz(func(_ *testing.T, body []byte, asJSON bool) {
		records := &collogspb.ExportLogsServiceRequest{}
		if decode(body, asJSON, records) == nil {
			for _, e := range recordsOf(records, asJSON) {
				_, _ = e.read(logs)
			}
		}
		spans := &coltracepb.ExportTraceServiceRequest{}
		if decode(body, asJSON, spans) == nil {
			for _, e := range spansOf(spans, asJSON) {
				_, _ = e.read(traces)
			}
		}
	})
}
