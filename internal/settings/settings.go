// Package settings is the only place that knows how the programs are configured: the names,
// defaults, meanings and rules of their environment variables. Those of `mneme` are flags
// as well. Each error names the variable that is wrong.
//
// A setting is one field of one of the structs below:
//
//	envconfig  the variable
//	default    the value if nobody sets it; where the programs differ,
//	           each constructor sets its own and there is no tag
//	desc       what it means, one sentence without a full stop
//	oneof      the allowed values, separated by commas
//	secret     "true" if its value must not be shown
//	file       "true" if the variable with _FILE appended can name a file that holds the value
//	name       the flag, where kong would derive another name from the field
//
// These make the flags of mneme, the --help of each program, mneme config, mneme doctor and
// docs/settings.md.
package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// prefix begins the name of every mneme variable.
const prefix = "MNEME_"

// testPrefix begins the names that only the project's own tests read.
const testPrefix = prefix + "TEST_"

// forNATSServer reports whether a variable is a password that the NATS server reads, as mneme nats-config names them.
// They may be set where its programs run, too.
func forNATSServer(variable string) bool {
	return strings.HasPrefix(variable, prefix+"NATS_") && strings.HasSuffix(variable, "_PASSWORD")
}

// Spec holds the settings of one program.
type Spec interface {
	// Check reports every invalid setting by its variable.
	Check() error
}

// Client holds the settings of every command that calls a server.
type Client struct {
	URL     string `envconfig:"MNEME_URL" default:"http://127.0.0.1:8420" desc:"the HTTP API"`
	NATSURL string `name:"nats-url" envconfig:"MNEME_NATS_URL" file:"true" default:"nats://127.0.0.1:4222" desc:"the NATS server or cluster, comma separated; for tokens, backup and the other commands that do not go through the HTTP API, for import if it is named, and for tail and redact scan unless they go over HTTP"`
	NATSTLS
	Token
	Tenant string `envconfig:"MNEME_TENANT" desc:"the tenant; if absent, the token's, or the tenant default"`
	Color  string `envconfig:"MNEME_COLOR" default:"auto" oneof:"auto,always,never" desc:"colored output: auto, always or never; auto means on a terminal unless NO_COLOR is set"`
}

// ForClient returns the defaults of the commands that call a server.
func ForClient() *Client { return &Client{} }

// Check implements [Spec].
func (s *Client) Check() error {
	return errors.Join(httpURL("MNEME_URL", s.URL, "http://127.0.0.1:8420"), natsURL(s.NATSURL), s.NATSTLS.Check(), s.Token.check())
}

// Models configures where a program keeps or finds the read models.
type Models struct {
	Store string `envconfig:"MNEME_STORE" default:"sqlite" oneof:"sqlite,neo4j" desc:"where the read models are kept: sqlite, in files under MNEME_DATA, or neo4j"`
	Neo4j
}

// Neo4j configures how a program reaches a Neo4j server.
type Neo4j struct {
	URI            string        `name:"neo4j-uri" envconfig:"MNEME_NEO4J_URI" default:"bolt://127.0.0.1:7687" desc:"the Neo4j server; bolt+s:// and neo4j+s:// use TLS"`
	User           string        `name:"neo4j-user" envconfig:"MNEME_NEO4J_USER" default:"neo4j" desc:"the user, if there is a password"`
	Password       string        `name:"neo4j-password" envconfig:"MNEME_NEO4J_PASSWORD" secret:"true" file:"true" desc:"the password; empty if the server needs none"`
	Database       string        `name:"neo4j-database" envconfig:"MNEME_NEO4J_DATABASE" default:"neo4j" desc:"the database"`
	CAFile         string        `name:"neo4j-ca-file" envconfig:"MNEME_NEO4J_CA_FILE" desc:"PEM file of the certificate authorities to trust; empty for the system's"`
	CertFile       string        `name:"neo4j-cert-file" envconfig:"MNEME_NEO4J_CERT_FILE" desc:"PEM file of the client certificate, for a server that requires one; it is read for each connection"`
	KeyFile        string        `name:"neo4j-key-file" envconfig:"MNEME_NEO4J_KEY_FILE" desc:"PEM file of its key"`
	PoolSize       int           `name:"neo4j-pool-size" envconfig:"MNEME_NEO4J_POOL_SIZE" default:"16" desc:"maximum number of connections to Neo4j"`
	ConnectTimeout time.Duration `name:"neo4j-connect-timeout" envconfig:"MNEME_NEO4J_CONNECT_TIMEOUT" default:"3s" desc:"how long to wait for a connection to Neo4j, from the pool or the server"`
	ReadTimeout    time.Duration `name:"neo4j-read-timeout" envconfig:"MNEME_NEO4J_READ_TIMEOUT" default:"30s" desc:"how long Neo4j may work on one read"`
	WriteTimeout   time.Duration `name:"neo4j-write-timeout" envconfig:"MNEME_NEO4J_WRITE_TIMEOUT" default:"30s" desc:"how long Neo4j may work on one batch; also how long a frozen process can hold its partition"`
	Warm           bool          `name:"neo4j-warm" envconfig:"MNEME_NEO4J_WARM" default:"true" negatable:"" desc:"at the start let Neo4j plan every query, so that the first answers are as quick as later ones; false spares a small server half a minute of processor time"`
}

// Check implements [Spec].
func (s *Neo4j) Check() error {
	return errors.Join(
		neo4jURI(s.URI), notEmpty("MNEME_NEO4J_DATABASE", s.Database), file("MNEME_NEO4J_CA_FILE", s.CAFile), pair("MNEME_NEO4J_CERT_FILE", s.CertFile, "MNEME_NEO4J_KEY_FILE", s.KeyFile),
		between("MNEME_NEO4J_POOL_SIZE", s.PoolSize, 1, 1000),
		positive("MNEME_NEO4J_CONNECT_TIMEOUT", s.ConnectTimeout), positive("MNEME_NEO4J_READ_TIMEOUT", s.ReadTimeout), positive("MNEME_NEO4J_WRITE_TIMEOUT", s.WriteTimeout))
}

// Up configures mneme up: everything in one process.
type Up struct {
	Data   string `envconfig:"MNEME_DATA" default:".mneme" desc:"directory of the log and the read models; created if missing"`
	Listen string `envconfig:"MNEME_LISTEN" default:"127.0.0.1:8420" desc:"address of the HTTP API; loopback, unless a token is required; port 0 takes a free one"`
	Hosts
	Access
	NATSListen string `envconfig:"MNEME_NATS_LISTEN" default:"127.0.0.1:4222" desc:"loopback address for agents that publish over NATS; port 0 takes a free one"`
	Models
	Summaries
	Searching
	Insights
	Erasing
	Auditing
	Capturing
	OTLP
	LogSize   Bytes  `envconfig:"MNEME_LOG_SIZE" default:"0" desc:"size of the log when it is created, in bytes or with a unit, such as 20GiB; 0 for a size that suits the disk"`
	LogLevel  string `envconfig:"MNEME_LOG_LEVEL" default:"warn" oneof:"debug,info,warn,error" desc:"level of the log: debug, info, warn or error"`
	LogFormat string `envconfig:"MNEME_LOG_FORMAT" default:"text" oneof:"text,json" desc:"format of the log: text or json"`
}

// ForUp returns the defaults of mneme up.
func ForUp() *Up { return &Up{} }

// Check implements [Spec].
func (s *Up) Check() error {
	return errors.Join(s.Access.Listen("MNEME_LISTEN", s.Listen, false), s.Hosts.check(), s.Access.Check(), natsLoopback("MNEME_NATS_LISTEN", s.NATSListen), s.Neo4j.Check(), s.Summaries.Check(), s.Searching.Check(), s.Insights.check(), s.Erasing.Check(), s.Auditing.Check(), s.Capturing.Check(), s.OTLP.Check(&s.Access), directory("MNEME_DATA", s.Data))
}

// Insights configures what insights are computed with.
type Insights struct {
	Prices string `name:"prices-file" placeholder:"FILE" envconfig:"MNEME_PRICES_FILE" desc:"YAML or JSON file of the price of a million tokens of each model, read at the start; without it insights show no cost; quotas of cost use it too"`
}

func (s *Insights) check() error { return file("MNEME_PRICES_FILE", s.Prices) }

// Searching configures how a conversation's past is searched.
type Searching struct {
	Embedding
	Reranking
	Memory
	ProjectMemory string `envconfig:"MNEME_PROJECT_MEMORY" default:"on" oneof:"on,off" desc:"whether the context of a young conversation shows what earlier sessions of its project left; a request can override it"`
}

// Check reports every invalid setting by its variable.
func (s *Searching) Check() error {
	return errors.Join(s.Embedding.Check(), s.Reranking.Check(), s.Memory.check())
}

// Network says whether a program may trust its network.
type Network struct {
	Trust bool `envconfig:"MNEME_TRUST_NETWORK" default:"false" desc:"listen on any address, although anyone who reaches it can read and write everything for which no token is required: only on a private network, such as docker compose's"`
	Hosts
}

// listen checks the address to listen on and the allowed host names.
func (n Network) listen(address string) error {
	if n.Trust {
		return errors.Join(hostPort("MNEME_LISTEN", address), n.Hosts.check())
	}
	err := Loopback("MNEME_LISTEN", address)
	if err != nil && hostPort("MNEME_LISTEN", address) == nil {
		err = fmt.Errorf("%w; on a private network set MNEME_TRUST_NETWORK=true", err)
	}
	return errors.Join(err, n.Hosts.check())
}

// Worker configures a program that runs a projection.
type Worker struct {
	NATSURL string `envconfig:"MNEME_NATS_URL" file:"true" default:"nats://127.0.0.1:4222" desc:"the NATS server or cluster, comma separated"`
	NATSTLS
	Partitions int    `envconfig:"MNEME_PARTITIONS" default:"1" desc:"partitions of the log, if this program is the first to create it; an existing log keeps its own, see mneme partitions"`
	Replicas   int    `envconfig:"MNEME_REPLICAS" default:"0" desc:"copies of the log, if this program creates it; 0 for three in a NATS cluster and one on a single server; an existing log keeps its own"`
	LogSize    Bytes  `envconfig:"MNEME_LOG_SIZE" default:"0" desc:"size of the log, in bytes or with a unit, such as 20GiB, if this program creates it: at most four fifths of the NATS disk; 0 for 64 GiB"`
	Data       string `envconfig:"MNEME_DATA" default:".mneme" desc:"directory of the SQLite read models; programs on one machine share it"`
	Models
	Listen string `envconfig:"MNEME_LISTEN" desc:"address of /healthz and /readyz; loopback, unless MNEME_TRUST_NETWORK is set"`
	Network
	LogLevel  string `envconfig:"MNEME_LOG_LEVEL" default:"info" oneof:"debug,info,warn,error" desc:"level of the log: debug, info, warn or error"`
	LogFormat string `envconfig:"MNEME_LOG_FORMAT" default:"text" oneof:"text,json" desc:"format of the log: text or json"`
}

// ForIngestor returns the defaults of ingestor.
func ForIngestor() *Worker { return &Worker{Listen: "127.0.0.1:8421"} }

// ForFileTracker returns the defaults of file-tracker.
func ForFileTracker() *Worker { return &Worker{Listen: "127.0.0.1:8422"} }

// Summarizer configures the summarizer.
type Summarizer struct {
	Worker
	Summaries
	Embedding
	Quotas string `name:"quotas-file" placeholder:"FILE" envconfig:"MNEME_QUOTAS_FILE" desc:"YAML file of the tenants' quotas, of which this program applies those of model calls, tokens and cost; it is read again when it changes"`
	Prices string `name:"prices-file" placeholder:"FILE" envconfig:"MNEME_PRICES_FILE" desc:"YAML or JSON file of the price of a million tokens of each model, read at the start, for quotas of cost; MNEME_LLM_INPUT_PRICE and MNEME_LLM_OUTPUT_PRICE come first"`
}

// ForSummarizer returns the defaults of summarizer.
func ForSummarizer() *Summarizer { return &Summarizer{Worker: Worker{Listen: "127.0.0.1:8423"}} }

// Check implements [Spec].
func (s *Summarizer) Check() error {
	return errors.Join(s.Worker.Check(), s.Summaries.Check(), s.Embedding.Check(), file("MNEME_QUOTAS_FILE", s.Quotas), file("MNEME_PRICES_FILE", s.Prices))
}

// Check implements [Spec].
func (s *Worker) Check() error {
	return errors.Join(
		natsURL(s.NATSURL), s.NATSTLS.Check(), s.listen(s.Listen), s.Neo4j.Check(),
		between("MNEME_PARTITIONS", s.Partitions, 1, 32), between("MNEME_REPLICAS", s.Replicas, 0, 5),
		directory("MNEME_DATA", s.Data))
}

// API configures context-api.
type API struct {
	NATSURL string `envconfig:"MNEME_NATS_URL" file:"true" default:"nats://127.0.0.1:4222" desc:"the NATS server or cluster, comma separated"`
	NATSTLS
	Callout string `envconfig:"MNEME_NATS_CALLOUT_SEED_FILE" desc:"the file that mneme nats-config --callout-seed-file made: agents then connect to NATS with a token, about which the server asks this program"`
	Data    string `envconfig:"MNEME_DATA" default:".mneme" desc:"directory of the SQLite read models that ingestor, file-tracker and summarizer write"`
	Models
	Condensing
	Analysing
	Searching
	Insights
	Erasing
	Auditing
	Listen string `envconfig:"MNEME_LISTEN" default:"127.0.0.1:8420" desc:"address of the HTTP API; loopback, unless a token is required or MNEME_TRUST_NETWORK is set"`
	Network
	Access
	LogLevel  string `envconfig:"MNEME_LOG_LEVEL" default:"info" oneof:"debug,info,warn,error" desc:"level of the log: debug, info, warn or error"`
	LogFormat string `envconfig:"MNEME_LOG_FORMAT" default:"text" oneof:"text,json" desc:"format of the log: text or json"`
}

// ForContextAPI returns the defaults of context-api.
func ForContextAPI() *API { return &API{} }

// Check implements [Spec].
func (s *API) Check() error {
	var callout error
	if s.Callout != "" && !s.On() {
		callout = refuse("MNEME_NATS_CALLOUT_SEED_FILE", s.Callout, "no token is required, so none could be checked: set MNEME_TOKENS=true, too")
	}
	return errors.Join(callout, file("MNEME_NATS_CALLOUT_SEED_FILE", s.Callout), natsURL(s.NATSURL), s.NATSTLS.Check(), s.Access.Listen("MNEME_LISTEN", s.Listen, s.Trust), s.Hosts.check(), s.Access.Check(), s.Neo4j.Check(), s.Condensing.Check(), s.Analysing.Check(), s.Searching.Check(), s.Insights.check(), s.Erasing.Check(), s.Auditing.Check(), directory("MNEME_DATA", s.Data))
}

// Program is a program, or a part of mneme, together with its settings.
type Program struct {
	Name  string
	Does  string
	Flags bool        // its settings are also flags
	New   func() Spec // with its own defaults
}

// Programs lists all programs in the order in which they are shown.
func Programs() []Program {
	return []Program{
		{"client", "the commands of mneme that call a server", true, func() Spec { return ForClient() }},
		{"up", "everything in one process", true, func() Spec { return ForUp() }},
		{"ingestor", `projects the log into the read models "graph", "projects" and "code"`, false, func() Spec { return ForIngestor() }},
		{"file-tracker", "keeps track of the files that tools touched, and adds up figures by day: the read models \"files\" and \"insight\"", false, func() Spec { return ForFileTracker() }},
		{"summarizer", "writes the summaries that are due, and embeds messages through an endpoint if one is configured", false, func() Spec { return ForSummarizer() }},
		{"context-api", "serves the HTTP API from the read models", false, func() Spec { return ForContextAPI() }},
		{"traces", "traces, in every program: OpenTelemetry's own variables. mneme reads these, the SDK reads the others", false, func() Spec { return ForTelemetry() }},
	}
}

// program returns the program of that name, which must be among [Programs].
func program(name string) Program {
	list := Programs()
	return list[slices.IndexFunc(list, func(p Program) bool { return p.Name == name })]
}
