package transcript

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

// message is a neutral line.
func message(id, content string) string {
	return fmt.Sprintf(`{"kind":"message","conversation_id":"a:1","id":%q,"role":"user","content":%q}`, id, content)
}

func packed(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func ids(items []Item) (ids []string) {
	for _, i := range items {
		if i.Err == nil {
			ids = append(ids, i.Event.ID)
		}
	}
	return ids
}

func TestBadLineIsRefusedAndTheRestIsRead(t *testing.T) {
	for name, c := range map[string]struct{ bad, reason string }{
		"not JSON":           {`{"kind":`, "is not JSON: unexpected end of JSON input"},
		"text":               {`hello`, "is not JSON: invalid character 'h' looking for beginning of value"},
		"a NUL byte":         {"{\"kind\":\"mess\x00age\"}", "is not JSON: invalid character '\\x00' in string literal"},
		"NUL bytes alone":    {"\x00\x00\x00", "is not JSON: invalid character '\\x00' looking for beginning of value"},
		"not UTF-8":          {"{\"kind\":\"\xff\"}", "is not UTF-8"},
		"an unknown kind":    {`{"kind":"dream","conversation_id":"a:1","id":"x"}`, `kind: "dream" is not one of conversation, message, tool_call, tool_result, summary`},
		"a line of 20 MB":    {message("x", strings.Repeat("x", 20<<20)), fmt.Sprintf("is %d bytes long, the limit is %d", 20<<20+len(message("x", ""))+1, MaxLineBytes)},
		"too large an event": {message("x", strings.Repeat("x", events.MaxEventBytes)), fmt.Sprintf("body: is %d bytes long, the limit is %d", events.MaxEventBytes+45, events.MaxEventBytes)},
		"too long an id":     {message(strings.Repeat("i", events.MaxIDBytes+1), ""), fmt.Sprintf("id: is %d bytes long, the limit is %d", events.MaxIDBytes+1, events.MaxIDBytes)},
	} {
		t.Run(name, func(t *testing.T) {
			text := message("1", "") + "\r\n\n" + c.bad + "\n" + message("2", "") + "\n"
			for _, format := range []string{"neutral", Auto} {
				items := readAll(t, []byte(text), "x", format)
				assert.Equal(t, []string{"1", "2"}, ids(items))
				assert.Equal(t, map[int]string{3: c.reason}, refused(items))
			}
		})
	}
}

// VS Code writes a whole session on the first line, with the user's images in it.
func TestALineWithAWholeSessionMayBeLong(t *testing.T) {
	const request = `{"requestId":"%s","message":{"text":"Why?"},"response":[],"modelState":{"value":1}}`
	long := fmt.Sprintf(`{"kind":0,"v":{"sessionId":"s","image":%q,"requests":[`+request+`]}}`, strings.Repeat("x", MaxLineBytes), "1")
	text := long + "\n" + fmt.Sprintf(`{"kind":2,"k":["requests"],"v":[`+request+`]}`, "2") + "\n"
	for _, format := range []string{vscodeFormat, Auto} {
		items := readAll(t, []byte(text), "a/chatSessions/s.jsonl", format)
		assert.Equal(t, []string{"vscode_chat:s", "vscode_chat:s:1", "vscode_chat:s:2"}, ids(items))
		assert.Empty(t, refused(items))
	}
}

func TestASessionOfVSCodeWhoseMembersHaveOtherNamesHasNoRequests(t *testing.T) {
	for _, text := range []string{`{"sessionId":"s","Requests":[{"requestId":"1"}]}`, `{"kind":0,"v":{"sessionId":"s","requests":[],"Requests":[{"requestId":"1"}]}}`} {
		assert.Empty(t, readAll(t, []byte(text), "a/chatSessions/s.jsonl", vscodeFormat))
	}
}

func TestAReasonSaysWhatIsExpected(t *testing.T) {
	assert.Equal(t, "is a JSON object, not a list", reason(json.Unmarshal([]byte(`{}`), &[]toolCall{})))
	assert.Equal(t, "is a JSON number, not an object", reason(json.Unmarshal([]byte(`1`), &toolCall{})))
}

func TestTruncatedLastLineIsRefused(t *testing.T) {
	items := readAll(t, []byte(message("1", "")+"\n"+message("2", "")[:30]), "x", Auto)
	assert.Equal(t, []string{"1"}, ids(items))
	assert.Equal(t, map[int]string{2: "the recording ends inside this line"}, refused(items))
}

func TestUnknownFormatErrorQuotesNothingOfTheFile(t *testing.T) {
	for text, reason := range map[string]string{
		"root:x:0:0:root:/root:/bin/bash\n": "line 1: is not JSON",
		`{"password":"hunter2"}`:            "line 1: is JSON of another kind",
	} {
		err := Read(t.Context(), strings.NewReader(text), "x", Auto, func(Item) error { return nil })
		require.ErrorIs(t, err, ErrUnknownFormat)
		require.ErrorContains(t, err, reason)
		require.NotContains(t, err.Error(), "root")
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestLastLineWithoutNewlineIsRead(t *testing.T) {
	assert.Equal(t, []string{"1", "2"}, ids(readAll(t, []byte("\xef\xbb\xbf"+message("1", "")+"\n"+message("2", "")), "x", Auto)))
}

func TestALineBehindTheZerosOfAPowerLossIsRead(t *testing.T) {
	zeros := strings.Repeat("\x00", 5000)
	for _, text := range []string{message("1", "") + "\n" + zeros + message("2", "") + "\n", message("1", "") + zeros + "\n" + message("2", ""), zeros + message("1", "") + "\n" + message("2", "")} {
		items := readAll(t, []byte(text), "", Auto)
		require.Empty(t, refused(items))
		require.Equal(t, []string{"1", "2"}, ids(items))
	}
}

func TestTwoValuesOnOneLineAreBothRead(t *testing.T) {
	items := readAll(t, []byte(message("1", "")+message("2", "")+` {"kind":"?"} ]`+"\n"+message("3", "")), "x", Auto)
	assert.Equal(t, []string{"1", "2", "3"}, ids(items))
	assert.Len(t, items, 5)
	assert.ErrorContains(t, items[3].Err, "line 1: is not JSON")
}

func TestGzipIsRecognizedByItsFirstBytes(t *testing.T) {
	text := message("1", "") + "\n" + message("2", "")
	assert.Equal(t, []string{"1", "2"}, ids(readAll(t, packed(t, text), "plain.jsonl", Auto)))
	assert.Equal(t, []string{"1", "2"}, ids(readAll(t, []byte(text), "packed.jsonl.gz", Auto)))
	both := append(packed(t, text+"\n"), packed(t, message("3", ""))...)
	assert.Equal(t, []string{"1", "2", "3"}, ids(readAll(t, both, "x", Auto)), "two gzip members in a row")
}

func TestDamagedGzipIsRefusedFromTheDamagedLine(t *testing.T) {
	var text strings.Builder
	for i := range 2000 {
		text.WriteString(message(fmt.Sprint(i), fmt.Sprintf("%x", i*7919)) + "\n")
	}
	whole := packed(t, text.String())
	last := func(data []byte) (good int, bad *LineError) {
		items := readAll(t, data, "x", "neutral")
		for _, i := range items[:len(items)-1] {
			require.Nil(t, i.Err)
		}
		return len(items) - 1, items[len(items)-1].Err
	}
	n, bad := last(whole[:len(whole)/2])
	assert.Greater(t, n, 100)
	require.NotNil(t, bad)
	assert.Equal(t, n+1, bad.Line)
	assert.Equal(t, "the compressed data is truncated or damaged here: unexpected EOF", bad.Reason)
	require.ErrorIs(t, bad, io.ErrUnexpectedEOF)

	n, bad = last(whole[:len(whole)-3])
	assert.Equal(t, 2000, n)
	assert.Equal(t, 2001, bad.Line)

	broken := bytes.Clone(whole)
	broken[len(broken)-6] ^= 1
	n, bad = last(broken)
	assert.Equal(t, 2000, n)
	assert.ErrorIs(t, bad, gzip.ErrChecksum)

	_, bad = last(whole[:5])
	assert.Equal(t, 1, bad.Line)
}

func TestUnknownFormatIsAnError(t *testing.T) {
	nothing := func(Item) error { return errors.New("no item was expected") }
	err := Read(t.Context(), strings.NewReader(message("1", "")), "x", "word", nothing)
	require.ErrorIs(t, err, ErrUnknownFormat)
	assert.EqualError(t, err, `unknown transcript format: "word", known are auto, `+strings.Join(Formats(), ", "))

	for _, text := range []string{"hello\n", "{}\n{}\n", `{"kind":"x"`, strings.Repeat("1\n", 1000), "\x1f\x8b\x00"} {
		err := Read(t.Context(), strings.NewReader(text), "notes.txt", Auto, nothing)
		require.ErrorIs(t, err, ErrUnknownFormat, text)
		assert.ErrorContains(t, err, "notes.txt: ")
		assert.ErrorContains(t, err, "line 1: ")
	}
	for _, text := range []string{"", "\n \r\n"} {
		assert.NoError(t, Read(t.Context(), strings.NewReader(text), "x", "", nothing))
	}
}

func TestBadLinesBeforeTheFormatIsKnownAreRefusedInPlace(t *testing.T) {
	items := readAll(t, []byte("# a comment\n{}\n"+message("1", "")+"\n"), "x", Auto)
	assert.Equal(t, []string{"1"}, ids(items))
	assert.Equal(t, 1, items[0].Line)
	assert.Equal(t, "kind: is missing", items[1].Err.Reason)
	assert.Equal(t, 3, items[2].Line)
}

func TestReadReturnsErrorOfReaderContextOrYield(t *testing.T) {
	disk := errors.New("disk")
	text := message("1", "") + "\n" + message("2", "") + "\n"
	count := 0
	err := Read(t.Context(), io.MultiReader(strings.NewReader(text), iotest.ErrReader(disk)), "x", Auto, func(Item) error { count++; return nil })
	require.ErrorIs(t, err, disk)
	assert.ErrorContains(t, err, "x: line 3: ")
	assert.Equal(t, 2, count)

	full := errors.New("full")
	err = Read(t.Context(), strings.NewReader(text), "x", Auto, func(Item) error { return full })
	assert.ErrorIs(t, err, full)

	ctx, cancel := context.WithCancel(t.Context())
	err = Read(ctx, strings.NewReader(text), "x", Auto, func(Item) error { cancel(); return nil })
	assert.ErrorIs(t, err, context.Canceled)
}

func TestEndlessLineEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	endless := iotest.DataErrReader(readerFunc(func(p []byte) (int, error) {
		clear(p)
		cancel()
		return len(p), nil
	}))
	assert.ErrorIs(t, Read(ctx, endless, "x", "neutral", func(Item) error { return nil }), context.Canceled)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestEveryFormatHasANameAndAReader(t *testing.T) {
	for i, f := range formats {
		assert.Equal(t, Formats()[i], f.Name)
		assert.True(t, f.converter != nil && (f.detect != nil || f.raw) || f.store != nil, f.Name)
	}
}

func FuzzRead(f *testing.F) {
	names := append([]string{Auto}, Formats()...)
	for _, path := range append([]string{"testdata/neutral.jsonl", "testdata/" + sessionID + ".jsonl", oldRollout, newRollout, piSession}, fixtures(f)...) {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		for format, name := range names {
			if len(strings.Split(path, "/")) <= 2 || format == 0 || name == formatOf(path) {
				f.Add(data, uint8(format))
			}
		}
		f.Add(packed(f, string(data)), uint8(0))
		for _, line := range bytes.Split(data, []byte("\n")) {
			f.Add(line, uint8(0))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, format uint8) {
		read := func() (items []Item, err error) {
			err = Read(context.Background(), bytes.NewReader(data), "x.jsonl", names[int(format)%len(names)], func(i Item) error {
				items = append(items, i)
				return nil
			})
			return items, err
		}
		items, err := read()
		if err != nil {
			require.ErrorIs(t, err, ErrUnknownFormat)
		}
		line := 1
		for _, i := range items {
			require.GreaterOrEqual(t, i.Line, line)
			line = i.Line
			if i.Err != nil {
				require.Equal(t, i.Line, i.Err.Line)
				require.NotEmpty(t, i.Err.Reason)
				require.Empty(t, i.Event.ID)
				continue
			}
			_, err := events.Record(i.Event)
			require.NoError(t, err)
		}
		again, _ := read()
		require.Equal(t, items, again)
	})
}

func TestALineOfHundredsOfMegabytesIsReadInLittleMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.jsonl")
	file, err := os.Create(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	_, err = file.WriteString(message("1", "") + "\n")
	require.NoError(t, err)
	const end = 256 << 20 // before it nothing is stored, and zeros are read: one line
	_, err = file.WriteAt([]byte("\n"+message("2", "")+"\n"), end)
	require.NoError(t, err)
	_, err = file.Seek(0, io.SeekStart)
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var got []Item
	require.NoError(t, Read(t.Context(), file, "x", "neutral", func(i Item) error { got = append(got, i); return nil }))
	runtime.ReadMemStats(&after)
	require.Equal(t, []string{"1", "2"}, ids(got))
	require.Contains(t, refused(got)[2], "bytes long, the limit is")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(end/2))
}

// The parts of an answer of Kimi Code come line by line, and a few kilobytes of gzip can hold gigabytes of them.
func TestAnAnswerThatDoesNotEndIsNotHeldWhole(t *testing.T) {
	head := `{"type":"metadata","protocol_version":"1"}` + "\n"
	part := `{"type":"context.append_loop_event","event":{"type":"content.part","stepUuid":"s","part":{"type":"text","text":"` + strings.Repeat("x", 1<<20) + `"}}}` + "\n"
	const parts = 12
	lines, to := io.Pipe()
	go func() {
		_, err := io.WriteString(to, head+strings.Repeat(part, parts))
		_ = to.CloseWithError(err)
	}()
	var said []string
	require.NoError(t, Read(t.Context(), lines, "session/agents/main/wire.jsonl", kimiFormat, func(i Item) error {
		require.Nil(t, i.Err)
		if r, err := events.Record(i.Event); assert.NoError(t, err) {
			if m, ok := r.Payload.(*events.MessageCreated); ok {
				said = append(said, m.MessageID)
				require.Less(t, len(m.Content), MaxLineBytes/2)
			}
		}
		return nil
	}))
	require.Equal(t, []string{"kimi_code:session:s", "kimi_code:session:s:2", "kimi_code:session:s:3"}, said)
}

func TestObservationsOfOneActionAreJoinedAtOnce(t *testing.T) {
	const observations = 200_000 // adding each to those before it would take a minute
	var b strings.Builder
	b.WriteString(`{"history":[{"role":"assistant","content":"I look.","action":"ls"}`)
	for range observations {
		b.WriteString(`,{"role":"user","content":"0123456789"}`)
	}
	b.WriteString(`]}`)
	items := good(t, readAll(t, []byte(b.String()), "run/a.traj", sweAgentFormat))
	result := items[len(items)-1].Payload.(*events.ToolReturned)
	require.Len(t, result.Result.Text(), 10*observations)
}
