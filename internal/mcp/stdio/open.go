package stdio

import (
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// methodListen is the request that is answered only when the connection ends.
const methodListen = "subscriptions/listen"

// longestWait is how long answers may take after the end of the input. It is longer than a server lets a call
// wait for its turn. A program whose agent has ended must not stay because its server hangs.
const longestWait = 2 * time.Minute

// open are the requests that were read and are not answered yet.
type open struct {
	mu       sync.Mutex
	requests map[jsonrpc.ID]struct{}
	changed  chan struct{} // has an element if requests were answered since the last look
	closed   chan struct{} // closes when no further answer can be written
	once     sync.Once
}

// read notes a message of the client, if it is a request.
func (o *open) read(message []byte) {
	m, _ := jsonrpc.DecodeMessage(message)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() && r.Method != methodListen {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.requests[r.ID] = struct{}{}
	}
}

// written notes a message to the client, if it is an answer.
func (o *open) written(message []byte) {
	m, _ := jsonrpc.DecodeMessage(message)
	if r, ok := m.(*jsonrpc.Response); ok {
		o.mu.Lock()
		delete(o.requests, r.ID)
		o.mu.Unlock()
	}
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// wait returns when all requests are answered, when no answer can be written any more, or after longestWait.
func (o *open) wait() {
	late := time.After(longestWait)
	for {
		o.mu.Lock()
		left := len(o.requests)
		o.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-o.changed:
		case <-o.closed:
			return
		case <-late:
			return
		}
	}
}

// end has wait return.
func (o *open) end() { o.once.Do(func() { close(o.closed) }) }
