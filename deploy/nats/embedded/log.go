package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// serverLog forwards the server's log lines. It keeps the first fatal line, which would end
// a separate nats-server, for the caller of [Start].
type serverLog struct {
	log   *slog.Logger
	debug bool

	mu    sync.Mutex
	first error
}

func newServerLog(log *slog.Logger) *serverLog {
	return &serverLog{
		log:   log.With("component", "nats-server"),
		debug: log.Enabled(context.Background(), slog.LevelDebug),
	}
}

func (l *serverLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

func (l *serverLog) write(level slog.Level, format string, v []any) string {
	text := fmt.Sprintf(format, v...)
	l.log.Log(context.Background(), level, strings.TrimSpace(text))
	return text
}

func (l *serverLog) Noticef(format string, v ...any) { l.write(slog.LevelInfo, format, v) }
func (l *serverLog) Errorf(format string, v ...any)  { l.write(slog.LevelError, format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.write(slog.LevelDebug, format, v) }
func (l *serverLog) Tracef(format string, v ...any)  { l.write(slog.LevelDebug-4, format, v) }

func (l *serverLog) Warnf(format string, v ...any) {
	if strings.HasPrefix(format, "Maximum payloads over") {
		l.Debugf(format, v...) // this warns of our max_payload; see server.conf
		return
	}
	l.write(slog.LevelWarn, format, v)
}

func (l *serverLog) Fatalf(format string, v ...any) {
	text := l.write(slog.LevelError, format, v)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = errors.New(text)
	}
}
