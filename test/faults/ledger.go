package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// entry is an acknowledged event in the ledger.
type entry struct {
	trap         bool // it is invalid: a read model must list it as failed
	conversation int
	index        int // number of the event in its conversation; undefined for a trap
	seq          uint64
	identity     events.Digest
	message      events.Digest // as it was sent, see [eventlog.Message.Digest]
}

// ledger is the file of acknowledged events. It is written and synced a few times a second, so that
// the data of an interrupted campaign can be checked.
type ledger struct {
	mu    sync.Mutex
	file  *os.File
	out   *bufio.Writer
	count int
	last  uint64 // highest sequence
	err   error

	stop  chan struct{}
	ended chan struct{}
}

const ledgerSync = 200 * time.Millisecond

func newLedger(path string) (*ledger, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	l := &ledger{file: file, out: bufio.NewWriterSize(file, 1<<20), stop: make(chan struct{}), ended: make(chan struct{})}
	go l.keep()
	return l, nil
}

func (l *ledger) keep() {
	defer close(l.ended)
	ticker := time.NewTicker(ledgerSync)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.sync()
		case <-l.stop:
			l.sync()
			return
		}
	}
}

func (l *ledger) sync() {
	l.mu.Lock()
	l.err = errors.Join(l.err, l.out.Flush())
	l.mu.Unlock()
	if err := l.file.Sync(); err != nil {
		l.mu.Lock()
		l.err = errors.Join(l.err, err)
		l.mu.Unlock()
	}
}

func (l *ledger) close() error {
	close(l.stop)
	<-l.ended
	return errors.Join(l.err, l.file.Close())
}

// add notes an acknowledged event.
func (l *ledger) add(e entry) {
	kind := 'e'
	if e.trap {
		kind = 'x'
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, "%c %d %d %d %s %s\n", kind, e.conversation, e.index, e.seq, e.identity, e.message)
	if !e.trap {
		l.count++
	}
	l.last = max(l.last, e.seq)
}

// acknowledged returns the number of acknowledged events and their highest sequence.
func (l *ledger) acknowledged() (events int, last uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count, l.last
}

// readLedger reads the entries of a ledger. The last line may be cut off.
func readLedger(path string, yield func(entry) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	in := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		e, err := parseEntry(line)
		if err != nil {
			return fmt.Errorf("%s: %q: %w", path, line, err)
		}
		if err := yield(e); err != nil {
			return err
		}
	}
}

func parseEntry(line string) (e entry, err error) {
	var kind, identity, message string
	if _, err := fmt.Sscan(strings.TrimSpace(line), &kind, &e.conversation, &e.index, &e.seq, &identity, &message); err != nil {
		return e, err
	}
	e.trap = kind == "x"
	for _, d := range []struct {
		text string
		into *events.Digest
	}{{identity, &e.identity}, {message, &e.message}} {
		if n, err := hex.Decode(d.into[:], []byte(d.text)); err != nil || n != len(d.into) {
			return e, fmt.Errorf("%q is not a digest", d.text)
		}
	}
	return e, nil
}

// digest returns the fingerprint of a message, regardless of the subject under which the stream
// stores it.
func digest(m eventlog.Message) events.Digest {
	m.Subject = ""
	return m.Digest()
}
