package eventlog

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// How long a server may take to accept a connection, and then to greet. Its operating system accepts, even while the server is
// busy, so a machine that is away is given up sooner: a program that waits for it can't be stopped meanwhile.
const (
	reachWithin = 2 * time.Second
	greetWithin = 10 * time.Second
)

// Connect connects to a NATS server and reconnects forever if the server goes away. The first
// connection must succeed; otherwise the error says why it failed. A user in the URL receives
// answers under [natsdeploy.InboxPrefix], where no other user may listen. A nil logger discards.
func Connect(servers, name string, logger *slog.Logger, options ...nats.Option) (*nats.Conn, error) {
	logger = cmp.Or(logger, slog.New(slog.DiscardHandler))
	own := []nats.Option{
		nats.Name("mneme " + name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.PingInterval(10 * time.Second),
		nats.Timeout(greetWithin),
		nats.SetCustomDialer(&net.Dialer{Timeout: reachWithin}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				logger.Warn("connection to NATS lost", "error", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) { logger.Info("reconnected to NATS", "url", c.ConnectedUrlRedacted()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), createLog) {
				logger.Warn("there is no log yet, and the user of this program may not create it: ingestor does", "error", err)
			} else if errors.Is(err, nats.ErrPermissionViolation) {
				logger.Error("NATS refused what the program needs: give its user the role of docs/nats-roles.md", "error", err)
			} else {
				logger.Warn("NATS reports a problem", "error", err)
			}
		}),
	}
	if user := userOf(servers); user != "" {
		own = append(own, nats.CustomInboxPrefix(natsdeploy.InboxPrefix(user)))
	}
	return nats.Connect(servers, append(own, options...)...)
}

// createLog is in the server's refusal to let a user create the log.
const createLog = `"$JS.API.STREAM.CREATE.` + natsdeploy.Stream + `"`

// userOf returns the first user with a password in a comma-separated list of URLs, "" for none. Like for the client, a
// URL need not name its scheme. A user without a password is a token.
func userOf(servers string) string {
	for one := range strings.SplitSeq(servers, ",") {
		if one = strings.TrimSpace(one); !strings.Contains(one, "://") {
			one = "nats://" + one
		}
		u, err := url.Parse(one)
		if err != nil || u.User == nil {
			continue
		}
		if _, ok := u.User.Password(); ok {
			return u.User.Username()
		}
	}
	return ""
}
