package natstest

import (
	"fmt"
	"strings"
	"sync"
)

// troubles collects the servers' warnings and errors. A fatal error, which would end a
// nats-server, does not end the test.
type troubles struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *troubles) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *troubles) write(format string, v []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.text, format+"\n", v...)
}

func (l *troubles) Noticef(string, ...any)         {}
func (l *troubles) Debugf(string, ...any)          {}
func (l *troubles) Tracef(string, ...any)          {}
func (l *troubles) Warnf(format string, v ...any)  { l.write(format, v) }
func (l *troubles) Errorf(format string, v ...any) { l.write(format, v) }
func (l *troubles) Fatalf(format string, v ...any) { l.write(format, v) }
