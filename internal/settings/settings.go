// Package settings reads what the programs are configured by: environment
// variables with the prefix MNEME_. It is the one place that knows their names,
// defaults and rules, and each error names the variable that is wrong.
package settings

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/kelseyhightower/envconfig"
)

// Prefix of every variable.
const prefix = "MNEME"

// Worker configures a program that drives a projection: ingestor, file-tracker.
type Worker struct {
	NATSURL    string `envconfig:"NATS_URL" default:"nats://127.0.0.1:4222" desc:"the NATS server or cluster, comma separated"`
	Partitions int    `envconfig:"PARTITIONS" default:"1" desc:"partitions of the log, if this program is the first to create it; checked otherwise"`
	Replicas   int    `envconfig:"REPLICAS" default:"1" desc:"copies of the log in a NATS cluster, if this program creates it"`
	Data       string `envconfig:"DATA" default:".mneme" desc:"directory of the SQLite read models; programs on one machine share it"`
	Listen     string `envconfig:"LISTEN" desc:"loopback address of /healthz and /readyz"`
	LogLevel   string `envconfig:"LOG_LEVEL" default:"info" desc:"debug, info, warn or error"`
	LogFormat  string `envconfig:"LOG_FORMAT" default:"text" desc:"text or json"`
}

// API configures context-api.
type API struct {
	NATSURL   string `envconfig:"NATS_URL" default:"nats://127.0.0.1:4222" desc:"the NATS server or cluster, comma separated"`
	Data      string `envconfig:"DATA" default:".mneme" desc:"directory of the SQLite read models that ingestor and file-tracker write"`
	Listen    string `envconfig:"LISTEN" desc:"loopback address of the HTTP API"`
	LogLevel  string `envconfig:"LOG_LEVEL" default:"info" desc:"debug, info, warn or error"`
	LogFormat string `envconfig:"LOG_FORMAT" default:"text" desc:"text or json"`
}

// ReadWorker reads and checks a worker's settings. listen is the program's default
// address.
func ReadWorker(listen string) (Worker, error) {
	s := Worker{}
	if err := read(&s); err != nil {
		return s, err
	}
	setDefault(&s.Listen, listen)
	return s, errors.Join(
		natsURL(s.NATSURL), Loopback(prefix+"_LISTEN", s.Listen), logging(s.LogLevel, s.LogFormat),
		between("PARTITIONS", s.Partitions, 1, 32), between("REPLICAS", s.Replicas, 1, 5), directory("DATA", s.Data))
}

// ReadAPI reads and checks context-api's settings.
func ReadAPI(listen string) (API, error) {
	s := API{}
	if err := read(&s); err != nil {
		return s, err
	}
	setDefault(&s.Listen, listen)
	return s, errors.Join(
		natsURL(s.NATSURL), Loopback(prefix+"_LISTEN", s.Listen), logging(s.LogLevel, s.LogFormat), directory("DATA", s.Data))
}

func read(spec any) error {
	err := envconfig.Process(prefix, spec)
	var parse *envconfig.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("%s=%q: not a %s", parse.KeyName, parse.Value, parse.TypeName)
	}
	return err
}

// Usage prints the table of a program's variables.
func Usage(w io.Writer, name, does, listen string, spec any) error {
	fmt.Fprintf(w, "%s %s\n\nIt is configured by environment variables:\n\n", name, does)
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	const row = "{{range .}}  {{usage_key .}}\t{{usage_description .}}\t{{usage_default .}}\n{{end}}"
	if err := envconfig.Usagef(prefix, spec, tw, "  VARIABLE\tMEANING\tDEFAULT\n"+row); err != nil {
		return err
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s_LISTEN is %s unless set.\n", prefix, listen)
	return err
}

// Logger makes the logger that the settings ask for. They must have been checked.
func Logger(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	_ = l.UnmarshalText([]byte(level))
	options := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// Loopback checks that an address to listen on can't be reached from other
// machines. Until there are tokens everything refuses to listen elsewhere.
func Loopback(name, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s=%q: not an address with a port, such as 127.0.0.1:8420", name, address)
	}
	if host == "localhost" {
		return nil
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s=%q: mneme has no tokens yet and listens on loopback only, such as 127.0.0.1:8420", name, address)
	}
	return nil
}

func natsURL(list string) error {
	for _, one := range strings.Split(list, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" || (u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss") {
			return fmt.Errorf("%s_NATS_URL=%q: not a NATS URL, such as nats://127.0.0.1:4222", prefix, one)
		}
	}
	return nil
}

func logging(level, format string) error {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return fmt.Errorf("%s_LOG_LEVEL=%q: none of debug, info, warn, error", prefix, level)
	}
	if format != "text" && format != "json" {
		return fmt.Errorf("%s_LOG_FORMAT=%q: neither text nor json", prefix, format)
	}
	return nil
}

func between(name string, value, low, high int) error {
	if value < low || value > high {
		return fmt.Errorf("%s_%s=%d: not between %d and %d", prefix, name, value, low, high)
	}
	return nil
}

func directory(name, path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return fmt.Errorf("%s_%s=%q: is a file, not a directory", prefix, name, path)
	}
	return nil
}

func setDefault(s *string, value string) {
	if *s == "" {
		*s = value
	}
}
