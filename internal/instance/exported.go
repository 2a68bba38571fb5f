package instance

import (
	"context"
	"path/filepath"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/hook"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/otlp"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/quota"
	"mneme.dev/mneme/internal/service"
)

// listenOTLP binds the addresses at which exporters of OpenTelemetry are answered.
func (i *Instance) listenOTLP(c *Config) error {
	serving := program.ServingOf(c.Access, c.Hosts, false)
	serving.HTTP2 = true
	for _, address := range c.OTLP {
		listener, err := program.Listen("--otlp-listen", address, serving, c.Logger)
		if err != nil {
			return err
		}
		i.otlp = append(i.otlp, listener)
	}
	return nil
}

// exported starts the receiver of what exporters send, nil if nobody listens for them.
func (i *Instance) exported(ctx context.Context, c *Config, models *service.Models, quotas *quota.Quotas) *otlp.Receiver {
	if len(i.otlp) == 0 {
		return nil
	}
	return otlp.New(ctx, otlp.Config{
		Log: i.Log, Redact: c.Redact, Logger: c.Logger.With("part", "otlp"), Memory: filepath.Join(c.Data, "otlp.json"), Counted: i.telemetry.Metrics.Exported,
		Lookup: func(tenant string) func(context.Context, []events.Event) ([]importer.Known, error) {
			return importer.Lookup(tenant, models.Graph)
		},
		Transcribed: func(tenant, conversation string) bool {
			agent, session := hook.Of(conversation)
			return agent != nil && tenant == capturedTenant && i.captured.Reads(agent.Name, session)
		},
		Admit: quotas.Hold,
	})
}

// startOTLP answers exporters from now on.
func (i *Instance) startOTLP(gate *access.Gate, quotas *quota.Quotas) {
	if i.receiver == nil {
		return
	}
	server := otlp.Server{Receiver: i.receiver, Gate: gate, Quotas: quotas}
	handler := server.Handler()
	for _, listener := range i.otlp {
		listener.Start(handler)
	}
	i.receiver.Listens(i.OTLPURLs())
}

// OTLPURLs returns the URLs at which exporters are answered, one for each address of the configuration. Of all addresses of
// this machine it names the loopback one, as HTTPURL does.
func (i *Instance) OTLPURLs() []string {
	var urls []string
	for _, listener := range i.otlp {
		urls = append(urls, reachable.Replace(listener.URL()))
	}
	return urls
}

// exportedStatus returns a function that reports the receiver's status, nil if there is no receiver.
func (i *Instance) exportedStatus() func() otlp.Status {
	if i.receiver == nil {
		return nil
	}
	return i.receiver.Status
}
