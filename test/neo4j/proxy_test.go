package neo4j_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy relays between a client and a server and can drop data.
type proxy struct {
	listener net.Listener
	server   string

	mu       sync.Mutex
	conns    map[net.Conn]bool
	onCommit func() cut // called for each commit that a client sends

	silent atomic.Bool
}

// cut says which part of a commit is lost.
type cut int

const (
	nothing   cut = iota
	theCommit     // the server never gets the commit
	theAnswer     // the server commits, but the client gets no answer
)

// commit is Bolt's message COMMIT with its length and its end: a structure without fields.
// Text practically never contains it, because a different length precedes each text. Once in
// a million it might; then a connection is lost without a commit.
var commit = []byte{0x00, 0x02, 0xB0, 0x12, 0x00, 0x00}

func newProxy(t *testing.T, uri string) *proxy {
	t.Helper()
	target, err := url.Parse(uri)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: listener, server: target.Host, onCommit: func() cut { return nothing }, conns: map[net.Conn]bool{}}
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			ended.Go(func() { p.carry(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.cutAll()
		ended.Wait()
	})
	return p
}

// URI returns the address for clients.
func (p *proxy) URI() string { return "bolt://" + p.listener.Addr().String() }

// atCommit sets which part of future commits is lost.
func (p *proxy) atCommit(lose func() cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onCommit = lose
}

// open returns the number of connections.
func (p *proxy) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// cutAll ends all connections.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// fallSilent makes the proxy keep connections and accept new ones, but relay nothing.
func (p *proxy) fallSilent() { p.silent.Store(true) }

// carry relays one connection until an end or the proxy closes it.
func (p *proxy) carry(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	p.mu.Lock()
	p.conns[client] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, client)
		p.mu.Unlock()
	}()
	deaf := make(chan struct{}) // closed when the client must get no more answers
	var answers sync.WaitGroup
	answers.Go(func() {
		defer func() { _ = client.Close() }()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			select {
			case <-deaf: // the server has answered: it has committed
				return
			default:
			}
			if err != nil {
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
	p.ask(client, server, deaf)
	select {
	case <-deaf: // until the server has answered
	default:
		_ = server.Close()
	}
	answers.Wait()
}

// ask relays the client's data.
func (p *proxy) ask(client io.Reader, server io.Writer, deaf chan struct{}) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if p.silent.Load() {
			continue
		}
		if bytes.HasSuffix(buffer[:n], commit) {
			p.mu.Lock()
			lose := p.onCommit
			p.mu.Unlock()
			switch lose() {
			case theCommit:
				return
			case theAnswer:
				close(deaf)
				_, _ = server.Write(buffer[:n])
				return
			}
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}
