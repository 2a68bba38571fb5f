package eventlog

import (
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
)

// Connect connects to a NATS server and reconnects forever if the server goes away. The first
// connection must succeed; otherwise the error says why it failed.
func Connect(url, name string, logger *slog.Logger, options ...nats.Option) (*nats.Conn, error) {
	options = append([]nats.Option{
		nats.Name("mneme " + name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.PingInterval(10 * time.Second),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				logger.Warn("connection to NATS lost", "error", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) { logger.Info("reconnected to NATS", "url", c.ConnectedUrlRedacted()) }),
	}, options...)
	return nats.Connect(url, options...)
}
