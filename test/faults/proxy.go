package main

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// proxy is a link: it stands between a client and a server and can spoil what it carries.
type proxy struct {
	listener net.Listener
	server   string
	ended    sync.WaitGroup

	delay atomic.Int64 // nanoseconds, each way
	rate  atomic.Int64 // bytes a second, each way; 0 for no limit
	gate  sync.RWMutex // locked while nothing goes through

	mu    sync.Mutex
	conns map[*net.TCPConn]bool
	shut  bool // the gate is locked
}

func newProxy(server string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, server: server, conns: map[*net.TCPConn]bool{}}
	p.ended.Go(p.accept)
	return p, nil
}

// address is where clients connect.
func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	_ = p.listener.Close()
	p.heal()
	p.reset()
	p.ended.Wait()
}

// heal makes it a good link again; connections that are there stay.
func (p *proxy) heal() {
	p.delay.Store(0)
	p.rate.Store(0)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		p.gate.Unlock()
	}
	p.shut = false
}

// blackHole lets nothing through any more, in either direction.
func (p *proxy) blackHole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.shut {
		p.gate.Lock()
	}
	p.shut = true
}

// pass waits while nothing goes through.
func (p *proxy) pass() {
	p.gate.RLock()
	defer p.gate.RUnlock()
}

// reset ends all connections as a router does that has lost its table.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.SetLinger(0) // RST, and what is on its way is lost
		_ = conn.Close()
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.ended.Go(func() { p.carry(client.(*net.TCPConn)) })
	}
}

// carry carries one connection until one of its ends, or the proxy, closes it.
func (p *proxy) carry(client *net.TCPConn) {
	defer p.keep(client)()
	conn, err := net.DialTimeout("tcp", p.server, time.Second)
	if err != nil {
		_ = client.SetLinger(0)
		return
	}
	server := conn.(*net.TCPConn)
	defer p.keep(server)()
	var both sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{client, server}, {server, client}} {
		both.Go(func() {
			p.pump(way[0], way[1])
			_, _ = client.Close(), server.Close()
		})
	}
	both.Wait()
}

// keep knows a connection until the function that it returns closes it.
func (p *proxy) keep(conn *net.TCPConn) (closeIt func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[conn] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, conn)
		_ = conn.Close()
	}
}

// piece is what was read at once, and when.
type piece struct {
	data []byte
	at   time.Time
}

// pump carries one direction. A delay is one of each piece, not of all behind it: while
// the first is on its way others are read.
func (p *proxy) pump(from io.Reader, to io.Writer) {
	pieces := make(chan piece, 256)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer close(pieces)
		for {
			data := make([]byte, 16<<10)
			n, err := from.Read(data)
			if err != nil {
				return
			}
			select {
			case pieces <- piece{data[:n], time.Now()}:
			case <-stop:
				return
			}
		}
	}()
	for next := range pieces {
		time.Sleep(time.Until(next.at.Add(time.Duration(p.delay.Load()))))
		if rate := p.rate.Load(); rate > 0 {
			time.Sleep(time.Duration(len(next.data)) * time.Second / time.Duration(rate))
		}
		p.pass()
		if _, err := to.Write(next.data); err != nil {
			return
		}
	}
}
