// Package stdio is the transport of the Model Context Protocol over standard input and output.
package stdio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// New returns a transport that reads messages from in, one per line as the protocol demands, and writes to out. It
// answers invalid lines itself: the SDK's own transport would end the program, so that one bad line would take all
// tools from an agent. For the same reason it takes batches apart, which only protocol 2025-03-26 has: each of the requests
// is answered by a line of its own.
//
// When in ends, the transport ends once every request that was read has its answer, but after two minutes at the latest:
// the SDK cancels what it works on as soon as there is nothing more to read.
func New(in io.ReadCloser, out io.WriteCloser) *sdk.IOTransport {
	o := &open{requests: map[jsonrpc.ID]struct{}{}, changed: make(chan struct{}, 1), closed: make(chan struct{})}
	to := &whole{WriteCloser: out, open: o}
	return &sdk.IOTransport{Reader: &lines{Closer: in, from: bufio.NewReader(in), out: to, open: o}, Writer: to}
}

// lines passes a client's messages on, and answers lines that are not messages.
type lines struct {
	io.Closer
	from *bufio.Reader
	out  *whole
	open *open
	rest []byte // of messages, not read yet
}

// Close implements io.Closer.
func (l *lines) Close() error {
	l.open.end()
	return l.Closer.Close()
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.line()
		for _, message := range messagesIn(bytes.TrimSpace(line)) {
			if refused := refuse(message); refused != nil {
				if err := l.out.send(refused); err != nil {
					return 0, err
				}
				continue
			}
			l.open.read(message)
			l.rest = append(append(l.rest, message...), '\n')
		}
		if len(l.rest) > 0 {
			break // an error comes again
		}
		if err != nil {
			l.open.wait()
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// line reads a line. One that is longer than the SDK accepts is an error, as in the SDK.
func (l *lines) line() (line []byte, err error) {
	for {
		part, err := l.from.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > sdk.DefaultMaxLineLength {
			return nil, errors.New("a line of the client is longer than the longest message allowed")
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// messagesIn returns the messages of a line: those of a batch one by one.
func messagesIn(line []byte) (list []json.RawMessage) {
	switch {
	case len(line) == 0:
		return nil
	case line[0] == '[' && json.Unmarshal(line, &list) == nil && len(list) > 0:
		return list
	}
	return []json.RawMessage{line}
}

// refuse returns the answer to what is not a message, nil if it is one.
func refuse(message []byte) []byte {
	code, why := int64(jsonrpc.CodeParseError), "Parse error: a line must be one JSON object"
	if json.Valid(message) {
		if _, err := jsonrpc.DecodeMessage(message); err == nil {
			return nil
		}
		code, why = jsonrpc.CodeInvalidRequest, "Invalid Request: not a message of JSON-RPC 2.0"
	}
	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": why}})
	if err != nil {
		panic(err) // these are constants
	}
	return append(answer, '\n')
}

// whole writes one message at a time, from the SDK and from [lines].
type whole struct {
	mu sync.Mutex
	io.WriteCloser
	open *open
}

// Write implements io.Writer. The SDK writes each message with one call.
func (w *whole) Write(p []byte) (int, error) {
	if err := w.send(p); err != nil {
		w.open.end() // nobody reads the other answers either
		return 0, err
	}
	w.open.written(p)
	return len(p), nil
}

func (w *whole) send(p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.WriteCloser.Write(p)
	return err
}
