package events

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/cloudevents/sdk-go/v2/binding"
	ce "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/cloudevents/sdk-go/v2/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The SDK is the judge. These tests allow for some of its habits: it prints a source as Go's
// net/url does ("a b" becomes "a%20b"), it reads the data of "+json" types as text, its setters
// trim ids, and its HTTP binding does not percent-decode.

// genSDKEvent draws events whose ids the SDK's setters leave as they are.
func genSDKEvent() *rapid.Generator[Event] {
	return rapid.Map(genEvent(), func(e Event) Event {
		e.ID = strings.TrimSpace(cut("i"+e.ID, MaxIDBytes))
		e.Type = strings.TrimSpace(cut("t"+e.Type, MaxIDBytes))
		e.Subject = strings.TrimSpace(e.Subject)
		return e
	})
}

func TestTheSDKReadsOurBinaryModeAsWeMeanIt(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		e := genSDKEvent().Draw(r, "event")
		header, body := EncodeMessage(e)
		message := cehttp.NewMessage(httpHeader(r, header), io.NopCloser(bytes.NewReader(body)))
		require.Equal(r, binding.EncodingBinary, message.ReadEncoding())
		got, err := binding.ToEvent(context.Background(), message)
		require.NoError(r, err)
		requireSDKSame(r, e, got)
		require.Equal(r, string(e.Data), string(got.Data()))
	})
}

// httpHeader turns our NATS headers into what the SDK's HTTP binding expects:
// canonical names, plain values (undone by net/url, not by our own decoder), and
// the data's content type as Content-Type.
func httpHeader(t require.TestingT, header map[string][]string) http.Header {
	out := http.Header{}
	for name, values := range header {
		require.Len(t, values, 1)
		require.Equal(t, -1, strings.IndexFunc(values[0], func(c rune) bool { return c < 0x21 || c > 0x7E || c == '"' }), "%q", values[0])
		plain, err := url.PathUnescape(values[0])
		require.NoError(t, err)
		if name == "ce-datacontenttype" {
			name = "Content-Type"
		}
		out[http.CanonicalHeaderKey(name)] = []string{plain}
	}
	return out
}

func requireSDKSame(t require.TestingT, want Event, got *ce.Event) {
	require.Equal(t, want.SpecVersion, got.SpecVersion())
	require.Equal(t, want.ID, got.ID())
	require.Equal(t, types.ParseURIRef(want.Source).String(), got.Source())
	require.Equal(t, want.Type, got.Type())
	require.Equal(t, want.Subject, got.Subject())
	require.Equal(t, want.DataContentType, got.DataContentType())
	require.Equal(t, want.DataSchema, got.DataSchema())
	require.True(t, want.Time.Equal(got.Time()), "%v %v", want.Time, got.Time())
	require.Len(t, got.Extensions(), len(want.Extensions))
	for name, value := range want.Extensions {
		require.Equal(t, extensionText(value), extensionText(got.Extensions()[name]), name)
	}
}

func TestTheSDKReadsOurStructuredModeAsWeMeanIt(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		e := genSDKEvent().Draw(r, "event")
		body, err := EncodeStructured(e)
		require.NoError(r, err)
		require.True(r, json.Valid(body), "%s", body)
		var got ce.Event
		require.NoError(r, json.Unmarshal(body, &got), "%s", body)
		requireSDKSame(r, e, &got)
		require.Equal(r, strings.TrimSpace(string(e.Data)), strings.TrimSpace(string(got.Data())))
		require.Equal(r, e.Extensions == nil, got.Extensions() == nil)
		for name, value := range e.Extensions {
			require.Equal(r, value, got.Extensions()[name], "an extension keeps its type")
		}
	})
}

func TestWeReadTheSDKsStructuredModeAsItMeansIt(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		e := genSDKEvent().Draw(r, "event")
		if strings.Contains(e.DataContentType, "+json") {
			e.DataContentType = "application/json"
		}
		var out ce.Event
		out.SetSpecVersion(e.SpecVersion)
		out.SetID(e.ID)
		out.SetSource(e.Source)
		out.SetType(e.Type)
		out.SetSubject(e.Subject)
		out.SetDataSchema(e.DataSchema)
		if !e.Time.IsZero() {
			out.SetTime(e.Time)
		}
		for name, value := range e.Extensions {
			out.SetExtension(name, value)
		}
		if e.DataContentType != "" {
			out.SetDataContentType(e.DataContentType)
		}
		out.DataEncoded = e.Data
		out.DataBase64 = rapid.Bool().Draw(r, "base64") || e.DataContentType == "application/octet-stream"
		body, err := json.Marshal(out)
		require.NoError(r, err)

		got, err := DecodeStructured(body)
		require.NoError(r, err, "%s", body)
		requireSDKSame(r, got, &out)
		want := e
		want.Source = types.ParseURIRef(e.Source).String()
		want.Data, got.Data = undoHTMLEscapes(want.Data), undoHTMLEscapes(got.Data)
		requireSame(r, want, got)
	})
}

// undoHTMLEscapes undoes what json.Marshal does to "<", ">" and "&", U+2028 and U+2029 in the
// output of the SDK's own MarshalJSON.
func undoHTMLEscapes(data []byte) []byte {
	for escaped, plain := range map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&", `\u2028`: "\u2028", `\u2029`: "\u2029"} {
		data = bytes.ReplaceAll(data, []byte(escaped), []byte(plain))
	}
	return data
}
