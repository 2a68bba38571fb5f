// Package netlink puts a TCP link between a client and a server, which tests can make
// slow, silent or broken.
package netlink

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Link forwards data between a client and a server and can disturb it. It is safe for
// concurrent use.
type Link struct {
	address string
	server  string
	ended   sync.WaitGroup

	delay atomic.Int64 // nanoseconds, each way
	rate  atomic.Int64 // bytes a second, each way; 0 for no limit
	gate  sync.RWMutex // locked while nothing goes through

	mu    sync.Mutex
	conns map[*net.TCPConn]bool
	shut  bool // the gate is locked

	listening sync.Mutex   // held while the listener comes or goes
	listener  net.Listener // nil while connections are refused
}

// Listener listens on a free port of loopback. The port is below the range that the system gives to clients and to
// programs that ask for any port: otherwise one of them could take it between the close of this listener and the next
// one.
func Listener() (net.Listener, error) {
	for range 100 {
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(12000)))); err == nil {
			return l, nil
		}
	}
	return nil, errors.New("no port is free")
}

// New makes a link to a server's address, on a free port of loopback.
func New(server string) (*Link, error) {
	listener, err := Listener()
	if err != nil {
		return nil, err
	}
	l := &Link{address: listener.Addr().String(), server: server, conns: map[*net.TCPConn]bool{}}
	l.takeFrom(listener)
	return l, nil
}

// Address returns the address for clients, "127.0.0.1:40123". It never changes.
func (l *Link) Address() string { return l.address }

// Close ends all connections and accepts no more.
func (l *Link) Close() {
	l.stopListening()
	l.Heal()
	l.Reset()
	l.ended.Wait()
}

// Heal removes delays, limits and black holes; existing connections stay. It does not undo
// [Link.Refuse].
func (l *Link) Heal() {
	l.Delay(0)
	l.Rate(0)
	l.gateOpen(true)
}

// Delay delays data in each direction; 0 for no delay.
func (l *Link) Delay(d time.Duration) { l.delay.Store(int64(d)) }

// Rate limits the bytes per second in each direction; 0 for no limit.
func (l *Link) Rate(bytes int64) { l.rate.Store(bytes) }

// BlackHole lets nothing through in either direction, and holds the data until [Link.Heal].
func (l *Link) BlackHole() { l.gateOpen(false) }

// Refuse ends all connections and refuses new ones until [Link.Listen].
func (l *Link) Refuse() {
	l.stopListening()
	l.Reset()
}

// Listen accepts connections again after [Link.Refuse], on the same port. It fails if another
// program has taken the port.
func (l *Link) Listen() error {
	l.listening.Lock()
	defer l.listening.Unlock()
	if l.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp", l.address)
	if err == nil {
		l.takeFrom(listener)
	}
	return err
}

// Reset ends all connections like a router that has lost its table.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		_ = conn.SetLinger(0) // RST: data in flight is lost
		_ = conn.Close()
	}
}

func (l *Link) takeFrom(listener net.Listener) {
	l.listener = listener
	l.ended.Go(func() { l.accept(listener) })
}

func (l *Link) stopListening() {
	l.listening.Lock()
	defer l.listening.Unlock()
	if l.listener != nil {
		_ = l.listener.Close()
	}
	l.listener = nil
}

func (l *Link) gateOpen(open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case open && l.shut:
		l.gate.Unlock()
	case !open && !l.shut:
		l.gate.Lock()
	}
	l.shut = !open
}

// pass waits while nothing goes through.
func (l *Link) pass() {
	l.gate.RLock()
	defer l.gate.RUnlock()
}

func (l *Link) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		l.ended.Go(func() { l.carry(client.(*net.TCPConn)) })
	}
}

// carry carries one connection until one of its ends, or the proxy, closes it.
func (l *Link) carry(client *net.TCPConn) {
	defer l.keep(client)()
	conn, err := net.DialTimeout("tcp", l.server, time.Second)
	if err != nil {
		_ = client.SetLinger(0)
		return
	}
	server := conn.(*net.TCPConn)
	defer l.keep(server)()
	var both sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{client, server}, {server, client}} {
		both.Go(func() {
			l.pump(way[0], way[1])
			_, _ = client.Close(), server.Close()
		})
	}
	both.Wait()
}

// keep registers a connection; the returned function closes and removes it.
func (l *Link) keep(conn *net.TCPConn) (closeIt func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[conn] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, conn)
		_ = conn.Close()
	}
}

// piece is the data of one read, and its time.
type piece struct {
	data []byte
	at   time.Time
}

// pump carries one direction. It delays each piece by itself: while one is delayed, pump
// reads the next ones.
func (l *Link) pump(from io.Reader, to io.Writer) {
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
		time.Sleep(time.Until(next.at.Add(time.Duration(l.delay.Load()))))
		if rate := l.rate.Load(); rate > 0 {
			time.Sleep(time.Duration(len(next.data)) * time.Second / time.Duration(rate))
		}
		l.pass()
		if _, err := to.Write(next.data); err != nil {
			return
		}
	}
}
