// Package settings is the one place that knows what the programs are configured by:
// the names, defaults, meanings and rules of environment variables, of which those of
// `mneme` are flags too. Each error names the variable that
// is wrong.
//
// A setting is one field of one of the structs below:
//
//	envconfig  the variable
//	default    what it is if nobody sets it; if the programs differ in it, the
//	           constructor of each sets it and there is no tag
//	desc       what it means, one sentence without a full stop
//	oneof      the values that it can have, separated by commas
//	secret     "true" if its value must not be shown
//	name       of its flag, where kong would derive another one from the field
//
// From these come the flags of mneme, the --help of each program, mneme config,
// mneme doctor and docs/settings.md.
package settings

import "errors"

// prefix of every variable that is ours.
const prefix = "MNEME_"

// Spec is the settings of one program.
type Spec interface {
	// Check tells which settings can't be right, each by its name.
	Check() error
}

// Client is what every command of mneme has that asks a server.
type Client struct {
	URL     string `envconfig:"MNEME_URL" default:"http://127.0.0.1:8420" desc:"the HTTP API"`
	NATSURL string `name:"nats-url" envconfig:"MNEME_NATS_URL" default:"nats://127.0.0.1:4222" desc:"the NATS server or cluster, comma separated; for import, tail and doctor"`
	Tenant  string `envconfig:"MNEME_TENANT" default:"default" desc:"the tenant"`
	Color   string `envconfig:"MNEME_COLOR" default:"auto" oneof:"auto,always,never" desc:"colours: auto, always or never; auto is on a terminal, unless NO_COLOR is set"`
}

// ForClient makes the settings of the commands that ask a server.
func ForClient() *Client { return &Client{} }

// Check implements [Spec].
func (s *Client) Check() error {
	return errors.Join(httpURL(s.URL), natsURL(s.NATSURL), notEmpty("MNEME_TENANT", s.Tenant))
}

// Up is what everything in one process is configured by.
type Up struct {
	Data       string `envconfig:"MNEME_DATA" default:".mneme" desc:"directory of the log and the read models; created if missing"`
	Listen     string `envconfig:"MNEME_LISTEN" default:"127.0.0.1:8420" desc:"loopback address of the HTTP API; port 0 takes a free one"`
	NATSListen string `envconfig:"MNEME_NATS_LISTEN" default:"127.0.0.1:4222" desc:"loopback address for agents that publish over NATS; port 0 takes a free one"`
	Store      string `envconfig:"MNEME_STORE" default:"sqlite" oneof:"sqlite" desc:"where the read models are kept"`
	LogSize    int64  `envconfig:"MNEME_LOG_SIZE" default:"0" desc:"size of the log in bytes when it is created; 0 for one that suits the disk"`
	LogLevel   string `envconfig:"MNEME_LOG_LEVEL" default:"warn" oneof:"debug,info,warn,error" desc:"debug, info, warn or error"`
	LogFormat  string `envconfig:"MNEME_LOG_FORMAT" default:"text" oneof:"text,json" desc:"text or json"`
}

// ForUp makes the settings of mneme up.
func ForUp() *Up { return &Up{} }

// Check implements [Spec].
func (s *Up) Check() error {
	return errors.Join(Loopback("MNEME_LISTEN", s.Listen), Loopback("MNEME_NATS_LISTEN", s.NATSListen), notNegative("MNEME_LOG_SIZE", s.LogSize), directory("MNEME_DATA", s.Data))
}

// Worker configures a program that drives a projection.
type Worker struct {
	NATSURL    string `envconfig:"MNEME_NATS_URL" default:"nats://127.0.0.1:4222" desc:"the NATS server or cluster, comma separated"`
	Partitions int    `envconfig:"MNEME_PARTITIONS" default:"1" desc:"partitions of the log, if this program is the first to create it; checked otherwise"`
	Replicas   int    `envconfig:"MNEME_REPLICAS" default:"1" desc:"copies of the log in a NATS cluster, if this program creates it"`
	Data       string `envconfig:"MNEME_DATA" default:".mneme" desc:"directory of the SQLite read models; programs on one machine share it"`
	Listen     string `envconfig:"MNEME_LISTEN" desc:"loopback address of /healthz and /readyz"`
	LogLevel   string `envconfig:"MNEME_LOG_LEVEL" default:"info" oneof:"debug,info,warn,error" desc:"debug, info, warn or error"`
	LogFormat  string `envconfig:"MNEME_LOG_FORMAT" default:"text" oneof:"text,json" desc:"text or json"`
}

// ForIngestor makes the settings of ingestor.
func ForIngestor() *Worker { return &Worker{Listen: "127.0.0.1:8421"} }

// ForFileTracker makes the settings of file-tracker.
func ForFileTracker() *Worker { return &Worker{Listen: "127.0.0.1:8422"} }

// Check implements [Spec].
func (s *Worker) Check() error {
	return errors.Join(
		natsURL(s.NATSURL), Loopback("MNEME_LISTEN", s.Listen),
		between("MNEME_PARTITIONS", s.Partitions, 1, 32), between("MNEME_REPLICAS", s.Replicas, 1, 5), directory("MNEME_DATA", s.Data))
}

// API configures context-api.
type API struct {
	NATSURL   string `envconfig:"MNEME_NATS_URL" default:"nats://127.0.0.1:4222" desc:"the NATS server or cluster, comma separated"`
	Data      string `envconfig:"MNEME_DATA" default:".mneme" desc:"directory of the SQLite read models that ingestor and file-tracker write"`
	Listen    string `envconfig:"MNEME_LISTEN" default:"127.0.0.1:8420" desc:"loopback address of the HTTP API"`
	LogLevel  string `envconfig:"MNEME_LOG_LEVEL" default:"info" oneof:"debug,info,warn,error" desc:"debug, info, warn or error"`
	LogFormat string `envconfig:"MNEME_LOG_FORMAT" default:"text" oneof:"text,json" desc:"text or json"`
}

// ForContextAPI makes the settings of context-api.
func ForContextAPI() *API { return &API{} }

// Check implements [Spec].
func (s *API) Check() error {
	return errors.Join(natsURL(s.NATSURL), Loopback("MNEME_LISTEN", s.Listen), directory("MNEME_DATA", s.Data))
}

// Program is a program, or a part of mneme, with what it is configured by.
type Program struct {
	Name  string
	Does  string
	Flags bool        // its settings are flags too
	New   func() Spec // with the defaults that are its own
}

// Programs lists all programs, in the order in which they are shown.
func Programs() []Program {
	return []Program{
		{"client", "are the commands of mneme that ask a server.", true, func() Spec { return ForClient() }},
		{"up", "is mneme up: everything in one process.", true, func() Spec { return ForUp() }},
		{"ingestor", `projects the log into the read model "graph".`, false, func() Spec { return ForIngestor() }},
		{"file-tracker", "keeps the files that conversations touched.", false, func() Spec { return ForFileTracker() }},
		{"context-api", "serves the HTTP API from the read models.", false, func() Spec { return ForContextAPI() }},
		{"traces", "of every program are configured by OpenTelemetry's own variables; these are looked at, its SDK reads the others.", false, func() Spec { return ForTelemetry() }},
	}
}
