package events

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// realistic is a message.created with 1 KiB of data.
func realistic(b *testing.B) Event {
	e, err := New("conv-7f3a9c", "agent/claude-code", "0196f1de-7c53-7e1f-9e3a-2f6f4f1f5a10", &MessageCreated{
		MessageID: "msg-0196f1de", Role: "assistant", Model: "claude-sonnet-4",
		Content: strings.Repeat("The test waits for a \"fixed\" port.\nI make it :0. ", 17),
		Usage:   []byte(`{"input_tokens":1834,"output_tokens":97}`),
	})
	require.NoError(b, err)
	e.Time = time.Date(2025, 3, 14, 9, 26, 53, 589e6, time.UTC)
	e.Extensions["traceparent"] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	b.ReportAllocs()
	b.SetBytes(int64(len(e.Data)))
	return e
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
