package main

import (
	"context"
	"fmt"

	"mneme/internal/service"
	"mneme/internal/settings"
)

// UpCmd runs everything in one process.
type UpCmd struct {
	Data       string `help:"Directory for the log and the read models; created if missing." default:".mneme" env:"MNEME_DATA"`
	Listen     string `help:"Address of the HTTP API; port 0 takes a free one. Loopback only, until there are tokens." default:"127.0.0.1:8420" env:"MNEME_LISTEN"`
	NATSListen string `help:"Address for agents that publish over NATS." name:"nats-listen" default:"127.0.0.1:4222" env:"MNEME_NATS_LISTEN"`
	Store      string `help:"Where the read models are kept." enum:"sqlite" default:"sqlite" env:"MNEME_STORE"`
	LogSize    int64  `help:"Size of the log in bytes when it is created; 0 for one that suits the disk." default:"0" env:"MNEME_LOG_SIZE"`
	LogLevel   string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"warn" env:"MNEME_LOG_LEVEL"`
	LogFormat  string `help:"text or json." enum:"text,json" default:"text" env:"MNEME_LOG_FORMAT"`
	Example    bool   `help:"If the log is empty let the example agent answer a question about this folder, and show its context."`
}

// ready is the one line of up --json.
type ready struct {
	HTTP  string `json:"http"`
	NATS  string `json:"nats"`
	Data  string `json:"data"`
	Store string `json:"store"`
}

// Help is what --help says below the summary.
func (*UpCmd) Help() string {
	return "The Go heap is kept near 400 MiB, the process below 600 MB. GOMEMLIMIT sets another limit for the heap; GOMEMLIMIT=off sets none."
}

// Run serves until it is interrupted.
func (c *UpCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	service.LimitMemory()
	instance, err := service.Up(ctx, service.Config{
		Data: c.Data, Listen: c.Listen, NATSListen: c.NATSListen, MaxBytes: c.LogSize,
		Logger: settings.Logger(t.err, c.LogLevel, c.LogFormat),
	})
	if err != nil {
		return err
	}
	if g.JSON {
		err = t.json(ready{HTTP: instance.HTTPURL(), NATS: instance.NATSURL(), Data: c.Data, Store: c.Store})
	} else {
		fmt.Fprintf(t.out, "mneme is up\n  HTTP  %s\n  NATS  %s\n  data  %s\n", instance.HTTPURL(), instance.NATSURL(), c.Data)
	}
	if err == nil && c.Example {
		err = example(ctx, instance, t)
	}
	if err == nil {
		if !g.JSON {
			fmt.Fprintln(t.out, "\nCtrl-C ends it.")
		}
		<-ctx.Done()
	}
	if !g.JSON && ctx.Err() != nil {
		t.say("stopping")
	}
	if closed := instance.Close(); err == nil {
		err = closed
	}
	return err
}
