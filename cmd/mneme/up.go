package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/doctor"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/eventlog"
)

// UpCmd runs everything in one process.
type UpCmd struct {
	settings.Up
	Example bool `help:"If the log is empty, let the example agent answer a question about this folder, and show its context."`
}

func (*UpCmd) Help() string {
	return `Creates what is missing and serves until Ctrl-C. Everything is in the data directory, which only one mneme can use at a time. mneme config up shows the settings it would use. The process takes about MNEME_MEMORY (640 MiB, or less if the container or the systemd unit has a smaller limit), of which the Go heap is kept near five eighths; GOMEMLIMIT sets another limit for the heap, and GOMEMLIMIT=off removes it.

Examples:

    mneme up
    mneme up --data /var/lib/mneme --log-format json
    mneme up --listen 127.0.0.1:0 --nats-listen 127.0.0.1:0 --json     free ports; prints them`
}

// ready is the one line of up --json.
type ready struct {
	HTTP  string `json:"http"`
	NATS  string `json:"nats"`
	Data  string `json:"data"`
	Store string `json:"store"`
	// OTLP are the URLs for exporters of OpenTelemetry.
	OTLP []string `json:"otlp,omitempty"`
}

// Run serves until it is interrupted.
func (c *UpCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := g.given.check(&c.Up); err != nil {
		return err
	}
	rules, err := redactRules(c.Redacting)
	if err != nil {
		return err
	}
	if !g.given["MNEME_DATA"] && os.Getenv("MNEME_DATA") == "" && shipped(ctx, c.Data) {
		return usageError("the folder %[1]s belongs to this git repository, so its log was made by whoever committed it, and agents would be told what it says. Name another folder with --data; if the log is yours, say so with --data %[1]s", c.Data)
	}
	service.LimitMemory(c.Memory)
	config := instance.Config{
		Data: c.Data, Models: c.Models, Summaries: c.Summaries, Searching: c.Searching, Insights: c.Insights, Erasing: c.Erasing, Auditing: c.Auditing, Capture: c.Agents(), OTLP: c.Addresses(), Redact: rules, Listen: c.Listen, Hosts: c.Hosts, Access: c.Access, NATSListen: c.NATSListen, MaxBytes: int64(c.LogSize),
		Logger: settings.Logger(t.err, c.LogLevel, c.LogFormat), Settings: settings.Effective(&c.Up, g.given), Doctor: doctor.Serving,
	}
	data := placeOf(c.Data)
	running, err := instance.Start(ctx, config)
	if err != nil {
		return err
	}
	if g.JSON {
		err = t.json(ready{HTTP: running.HTTPURL(), NATS: running.NATSURL(), Data: c.Data, Store: c.Store, OTLP: running.OTLPURLs()})
	} else {
		exporters, others := "", map[bool]string{true: ", and this machine's other addresses"}
		api, otlp := running.Everywhere()
		if urls := running.OTLPURLs(); len(urls) > 0 {
			exporters = "  OTLP  " + strings.Join(urls, ", ") + others[otlp] + "\n"
		}
		err = t.text(fmt.Sprintf("mneme is up\n  HTTP  %s%s\n  NATS  %s\n%s  data  %s\n", running.HTTPURL(), others[api], running.NATSURL(), exporters, data))
	}
	if err == nil && c.Example {
		err = example(ctx, g, running, t)
	}
	if err == nil && !g.JSON {
		err = t.text("\nCtrl-C ends it.\n")
	}
	if err == nil {
		running, err = serve(ctx, config, running)
	}
	if running != nil {
		err = errors.Join(err, running.Close())
	}
	return err
}

// placeOf returns the whole path of a data directory, and says if there is no log in it yet: started in another
// folder than the last time, mneme would otherwise seem to have forgotten everything.
func placeOf(dir string) string {
	whole, err := filepath.Abs(dir)
	if err != nil {
		whole = dir
	}
	whole = console.OneLine(whole)
	if _, err := os.Stat(filepath.Join(dir, "nats")); errors.Is(err, fs.ErrNotExist) {
		whole += " (new)"
	}
	return whole
}

// serve serves until ctx ends. Whenever the log is given more partitions, it starts another instance at the same
// addresses in place of the running one. It returns the instance that runs last, nil if none does.
func serve(ctx context.Context, config instance.Config, running *instance.Instance) (*instance.Instance, error) {
	for {
		err := running.Serve(ctx)
		if !errors.Is(err, eventlog.ErrPartitions) {
			return running, err
		}
		config.Listen, config.NATSListen, config.OTLP = withPort(config.Listen, running.HTTPURL()), hostOf(running.NATSURL()), withPorts(config.OTLP, running.OTLPURLs())
		if err := running.Close(); err != nil {
			return nil, err
		}
		if running, err = instance.Start(ctx, config); err != nil {
			return nil, err
		}
	}
}

// withPort returns the address with the port of a URL: the host of the URL may be only one of those of the address.
func withPort(listen, address string) string {
	host, _, err := net.SplitHostPort(listen)
	u, err2 := url.Parse(address)
	if err != nil || err2 != nil {
		return listen
	}
	return net.JoinHostPort(host, u.Port())
}

// withPorts is withPort for each of several addresses.
func withPorts(listen, addresses []string) (list []string) {
	for i := range listen {
		list = append(list, withPort(listen[i], addresses[i]))
	}
	return list
}

// hostOf returns the host and port of a URL.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
