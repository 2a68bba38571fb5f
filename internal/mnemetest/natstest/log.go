package natstest

import (
	"fmt"
	"strings"
	"sync"
)

// troubles is what servers say went wrong. What ends a nats-server ends no test.
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
