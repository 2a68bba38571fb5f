package events

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// realistic is a message.created with 1 KiB of data.
func realistic(b *testing.B) Event {
	return measured(b, TypeMessageCreated, `{"message_id":"msg-0196f1de","role":"assistant","content":`+
		quoted(strings.Repeat("The test waits for a \"fixed\" port.\nI make it :0. ", 17))+
		`,"model":"claude-sonnet-4","usage":{"input_tokens":1834,"output_tokens":97}}`)
}

// realisticResult is a tool.returned with 1.5 KiB of data, such as a grep returns.
func realisticResult(b *testing.B) Event {
	return measured(b, TypeToolReturned, `{"tool_call_id":"toolu_01A9","success":true,"result":`+
		quoted(strings.Repeat("upload/server_test.go:41:\tlistener, err := net.Listen(\"tcp\", \":8080\")\n", 18))+
		`,"duration_ms":412.5}`)
}

func realisticCall(b *testing.B) Event {
	return measured(b, TypeToolCalled, `{"tool_call_id":"toolu_01A9","message_id":"msg-0196f1de","tool_name":"Edit",`+
		`"arguments":{"file_path":"/src/upload/server_test.go","old_string":"net.Listen(\"tcp\", \":8080\")",`+
		`"new_string":"net.Listen(\"tcp\", \":0\")","replace_all":true},"iteration":3}`)
}

func quoted(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func measured(b *testing.B, eventType, data string) Event {
	e := Event{
		SpecVersion: "1.0", ID: "0196f1de-7c53-7e1f-9e3a-2f6f4f1f5a10", Source: "agent/claude-code", Type: eventType, Subject: "conv-7f3a9c",
		Time: time.Date(2025, 3, 14, 9, 26, 53, 589e6, time.UTC), DataContentType: "application/json", Data: []byte(data),
		Extensions: map[string]any{"partitionkey": "conv-7f3a9c", "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
	}
	_, err := Record(e)
	require.NoError(b, err)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	return e
}

func BenchmarkRecord(b *testing.B) {
	for name, example := range map[string]func(*testing.B) Event{
		"message": realistic, "result": realisticResult, "call": realisticCall,
	} {
		b.Run(name, func(b *testing.B) {
			e := example(b)
			for b.Loop() {
				if _, err := Record(e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkIngest does all the work that ingest needs from this package for one result.
func BenchmarkIngest(b *testing.B) {
	header, body := EncodeMessage(realisticResult(b))
	for b.Loop() {
		e, err := DecodeMessage(header, body)
		if err != nil {
			b.Fatal(err)
		}
		r, err := Record(e)
		if err != nil {
			b.Fatal(err)
		}
		r.Identity("default")
		r.Content()
		r.Payload.(*ToolReturned).Text()
	}
}

func BenchmarkDecodeAndRecordBinary(b *testing.B) {
	header, body := EncodeMessage(realistic(b))
	for b.Loop() {
		e, err := DecodeMessage(header, body)
		if err == nil {
			_, err = Record(e)
		}
		require.NoError(b, err)
	}
}

func BenchmarkDecodeBinary(b *testing.B) {
	header, body := EncodeMessage(realistic(b))
	for b.Loop() {
		if _, err := DecodeMessage(header, body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeAndRecordStructured(b *testing.B) {
	body, err := EncodeStructured(realistic(b))
	require.NoError(b, err)
	for b.Loop() {
		e, err := DecodeStructured(body)
		if err == nil {
			_, err = Record(e)
		}
		require.NoError(b, err)
	}
}

func BenchmarkEncodeBinary(b *testing.B) {
	e := realistic(b)
	for b.Loop() {
		EncodeMessage(e)
	}
}

func BenchmarkEncodeStructured(b *testing.B) {
	e := realistic(b)
	for b.Loop() {
		if _, err := EncodeStructured(e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkContentCompact(b *testing.B) {
	e := realistic(b)
	for b.Loop() {
		e.Content()
	}
}

func BenchmarkContentWithWhiteSpace(b *testing.B) {
	e := realistic(b)
	e.Data = append(e.Data, '\n')
	for b.Loop() {
		e.Content()
	}
}

func BenchmarkIdentity(b *testing.B) {
	e := realistic(b)
	for b.Loop() {
		e.Identity("default")
	}
}

func BenchmarkParseSubject(b *testing.B) {
	subject, err := Address{Tenant: "default", Conversation: "conv 7f3a.9c", Kind: "message_created"}.Subject()
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseSubject(subject); err != nil {
			b.Fatal(err)
		}
	}
}
