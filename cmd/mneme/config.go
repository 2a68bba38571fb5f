package main

import (
	"mneme.dev/mneme/internal/settings"
)

// ConfigCmd groups the programs whose settings can be shown.
type ConfigCmd struct {
	Client     ConfigClientCmd     `cmd:"" default:"1" help:"Settings of the client commands."`
	Up         ConfigUpCmd         `cmd:"" help:"Settings of mneme up; takes the same flags."`
	Ingestor   ConfigIngestorCmd   `cmd:"" help:"Settings of the program ingestor."`
	FileTrack  ConfigFileTrackCmd  `cmd:"" name:"file-tracker" help:"Settings of the program file-tracker."`
	Summarizer ConfigSummarizerCmd `cmd:"" name:"summarizer" help:"Settings of the program summarizer."`
	ContextAPI ConfigContextAPICmd `cmd:"" name:"context-api" help:"Settings of the program context-api."`
	Traces     ConfigTracesCmd     `cmd:"" help:"Settings for traces, in every program."`
}

const configHelp = `Flags override the environment, which overrides the defaults. Invalid settings are listed, with exit code 2.

Examples:

    mneme config up
    MNEME_DATA=/var/lib/mneme mneme config ingestor --json`

// ConfigClientCmd shows the settings of the client commands.
type ConfigClientCmd struct{}

func (*ConfigClientCmd) Help() string { return configHelp }

func (*ConfigClientCmd) Run(g *Globals, t *terminal) error { return g.config(t, &g.Client, g.given) }

// ConfigUpCmd shows the settings of mneme up.
type ConfigUpCmd struct{ settings.Up }

func (*ConfigUpCmd) Help() string { return configHelp }

func (c *ConfigUpCmd) Run(g *Globals, t *terminal) error { return g.config(t, &c.Up, g.given) }

// ConfigIngestorCmd shows the settings of ingestor.
type ConfigIngestorCmd struct{}

func (*ConfigIngestorCmd) Help() string { return configHelp }

func (*ConfigIngestorCmd) Run(g *Globals, t *terminal) error {
	return g.configOf(t, settings.ForIngestor())
}

// ConfigFileTrackCmd shows the settings of file-tracker.
type ConfigFileTrackCmd struct{}

func (*ConfigFileTrackCmd) Help() string { return configHelp }

func (*ConfigFileTrackCmd) Run(g *Globals, t *terminal) error {
	return g.configOf(t, settings.ForFileTracker())
}

// ConfigSummarizerCmd shows the settings of summarizer.
type ConfigSummarizerCmd struct{}

func (*ConfigSummarizerCmd) Help() string { return configHelp }

func (*ConfigSummarizerCmd) Run(g *Globals, t *terminal) error {
	return g.configOf(t, settings.ForSummarizer())
}

// ConfigContextAPICmd shows the settings of context-api.
type ConfigContextAPICmd struct{}

func (*ConfigContextAPICmd) Help() string { return configHelp }

func (*ConfigContextAPICmd) Run(g *Globals, t *terminal) error {
	return g.configOf(t, settings.ForContextAPI())
}

// ConfigTracesCmd shows the settings of traces.
type ConfigTracesCmd struct{}

func (*ConfigTracesCmd) Help() string { return configHelp }

func (*ConfigTracesCmd) Run(g *Globals, t *terminal) error {
	return g.configOf(t, settings.ForTelemetry())
}

// configOf shows the settings of a program that has no flags for them.
func (g *Globals) configOf(t *terminal, spec settings.Spec) error {
	list := settings.Effective(spec, nil)
	if err := g.printConfig(t, list); err != nil {
		return err
	}
	if err := settings.Read(spec); err != nil {
		return usageError("%w", err)
	}
	return nil
}

func (g *Globals) config(t *terminal, spec settings.Spec, given flagsGiven) error {
	if err := g.printConfig(t, settings.Effective(spec, given)); err != nil {
		return err
	}
	return given.check(spec)
}

func (g *Globals) printConfig(t *terminal, list []settings.Setting) error {
	if g.JSON {
		return t.json(list)
	}
	rows := make([][]any, len(list))
	for i, s := range list {
		source := s.Source
		if source == settings.FromFlag {
			source = "flag --" + settings.Flag(s.Name)
		}
		rows[i] = []any{s.Name, s.Value, source, s.Desc}
	}
	return t.table([]column{{Name: "SETTING"}, {Name: "VALUE", Min: 10}, {Name: "FROM", Drop: 1}, {Name: "MEANING", Min: 20, Drop: 2}}, rows)
}
