// Package testdata finds recorded conversations for tests and reads them.
//
// The recordings are not part of the repository. Tests that need them skip, in one
// line, where they are absent; what they check is covered on small fixtures of the
// project's own, in the same form.
package testdata

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme.dev/mneme/internal/mnemetest"
)

// Variable is the environment variable that names the folder of the recordings.
const Variable = "MNEME_TEST_DATA"

// Event is one line of a recording in the neutral form: a conversation, message,
// tool_call, tool_result or summary. A result's call is the first of its parents.
type Event struct {
	Kind           string          `json:"kind"`
	ConversationID string          `json:"conversation_id"`
	ID             string          `json:"id"`
	ParentIDs      []string        `json:"parent_ids"`
	Seq            int             `json:"seq"`
	Role           string          `json:"role"`
	Content        string          `json:"content"`
	Reasoning      string          `json:"reasoning"`
	ToolName       string          `json:"tool_name"`
	Arguments      json.RawMessage `json:"arguments"`
	Files          []File          `json:"files"`
	Result         json.RawMessage `json:"result"`
	Success        *bool           `json:"success"`
	Error          string          `json:"error"`
	DurationMS     *float64        `json:"duration_ms"`
	Time           string          `json:"time"`
	Meta           map[string]any  `json:"meta"`
}

// File is a file that a call is labelled with. Op is read, write, edit, search or
// list.
type File struct {
	Path string `json:"path"`
	Op   string `json:"op"`
}

// Text is the result as the agent read it: a JSON string without its quotes, any
// other JSON as it is.
func (e *Event) Text() string {
	var s string
	if json.Unmarshal(e.Result, &s) == nil {
		return s
	}
	return string(e.Result)
}

// MetaText is a member of Meta that is a string, else "".
func (e *Event) MetaText(name string) string {
	s, _ := e.Meta[name].(string)
	return s
}

// Dir is the folder of the recordings: what [Variable] names, else shared/data
// beside the repository's checkout. It skips the test if there is none.
func Dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(Variable)
	if dir == "" {
		dir = filepath.Join(root(t), "..", "shared", "data")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Skipf("recorded data not found at %s: set %s", dir, Variable)
	}
	return dir
}

// root is the folder of go.mod at or above the test's working directory.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}

// Recording is the path of events/<name>.jsonl.gz of the recordings, or, unless [mnemetest.All], of a
// copy of its first n events. It skips the test if there are no recordings.
func Recording(t testing.TB, name string, n int) string {
	t.Helper()
	path := filepath.Join(Dir(t), "events", name+".jsonl.gz")
	if mnemetest.All {
		return path
	}
	part, err := os.Create(filepath.Join(t.TempDir(), name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	for line := range Lines[json.RawMessage](t, path) {
		if n--; n < 0 {
			break
		}
		if _, err := part.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
	}
	return part.Name()
}

// Events reads events/<name>.jsonl.gz of the recordings, in file order. It skips the
// test if there are no recordings and fails it if the file cannot be read.
func Events(t testing.TB, name string) iter.Seq[Event] {
	t.Helper()
	return Lines[Event](t, filepath.Join(Dir(t), "events", name+".jsonl.gz"))
}

// Lines reads a file of one JSON object a line, packed if its name ends in .gz. It
// fails the test if the file cannot be read or a line is no T.
func Lines[T any](t testing.TB, path string) iter.Seq[T] {
	return func(yield func(T) bool) {
		t.Helper()
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		var in io.Reader = file
		if strings.HasSuffix(path, ".gz") {
			if in, err = gzip.NewReader(file); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		decoder := json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
		for {
			var v T
			err := decoder.Decode(&v)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if !yield(v) {
				return
			}
		}
	}
}
