package settings

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"
)

func TestEverySettingIsDescribedAndItsDefaultIsValid(t *testing.T) {
	for _, p := range Programs() {
		spec := p.New()
		require.NoError(t, Read(spec), "the defaults of %s", p.Name)
		for _, f := range Fields(spec) {
			require.Regexp(t, "^(MNEME|OTEL)_", f.Variable, p.Name)
			require.NotEmpty(t, f.Desc, f.Variable)
			require.NotRegexp(t, `\.$`, f.Desc, f.Variable)
		}
		for _, s := range Effective(p.New(), nil) {
			require.Equal(t, FromDefault, s.Source, s.Name)
		}
	}
}

func TestReadChecksTheEnvironment(t *testing.T) {
	t.Setenv("MNEME_LISTEN", "127.0.0.1:99")
	t.Setenv("MNEME_PARTITIONS", "8")
	t.Setenv("DATA", "/nowhere")
	s := ForIngestor()
	require.NoError(t, Read(s))
	require.Equal(t, "127.0.0.1:99", s.Listen)
	require.Equal(t, 8, s.Partitions)
	require.Equal(t, ".mneme", s.Data, "a variable without our prefix is ignored")

	t.Setenv("MNEME_PARTITIONS", "99")
	t.Setenv("MNEME_LOG_FORMAT", "xml")
	t.Setenv("MNEME_NATS_URL", "nats://a:1,here")
	t.Setenv("MNEME_NEO4J_POOL_SIZE", "many")
	err := Read(ForFileTracker())
	require.EqualError(t, err, `MNEME_NEO4J_POOL_SIZE="many": not a whole number
MNEME_LOG_FORMAT="xml": not one of text, json
MNEME_NATS_URL="here": not a NATS URL, such as nats://127.0.0.1:4222
MNEME_PARTITIONS=99: not between 1 and 32`)
}

func TestEnvironmentFindsBadAndUnknownVariables(t *testing.T) {
	require.Empty(t, Environment())
	t.Setenv("MNEME_NATS_URI", "nats://127.0.0.1:4222")
	t.Setenv("MNEME_COLOUR_OF_THE_SKY", "blue")
	t.Setenv("MNEME_LLM_MODEL_FILE", "/run/secrets/model")
	t.Setenv("MNEME_TEST_DATA", "for tests, not a mistake")
	t.Setenv("MNEME_NATS_INGESTOR_PASSWORD", "for the NATS server, not a mistake")
	t.Setenv("MNEME_PARTITIONS", "0")
	t.Setenv("MNEME_INDEX_MEMORY", "big")
	t.Setenv("MNEME_DATA", t.TempDir())
	t.Setenv("OTEL_TRACES_EXPORTER", "zipkin")
	require.Equal(t, []Problem{
		{"MNEME_COLOUR_OF_THE_SKY", true, "MNEME_COLOUR_OF_THE_SKY: no program knows this name"},
		{"MNEME_INDEX_MEMORY", false, `MNEME_INDEX_MEMORY="big": not a whole number`},
		{"MNEME_LLM_MODEL_FILE", true, "MNEME_LLM_MODEL_FILE: no program knows this name; set MNEME_LLM_MODEL to what the file holds"},
		{"MNEME_NATS_URI", true, "MNEME_NATS_URI: no program knows this name; did you mean MNEME_NATS_URL?"},
		{"MNEME_PARTITIONS", false, "MNEME_PARTITIONS=0: not between 1 and 32"},
		{"OTEL_TRACES_EXPORTER", false, `OTEL_TRACES_EXPORTER="zipkin": not one of otlp, none`},
	}, Environment())
}

func TestAWorkerOnAPrivateNetworkIsToldHowToListenThere(t *testing.T) {
	t.Setenv("MNEME_LISTEN", "0.0.0.0:8421")
	require.ErrorContains(t, Read(ForIngestor()), "on a private network set MNEME_TRUST_NETWORK=true")
	t.Setenv("MNEME_TRUST_NETWORK", "true")
	require.NoError(t, Read(ForIngestor()))
}

// The NATS client would read the file only at the connection, and try again without end.
func TestAFileWithoutCredentialsIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ingestor.creds")
	require.NoError(t, os.WriteFile(path, []byte("no credentials\n"), 0o600))
	t.Setenv("MNEME_NATS_CREDS_FILE", path)
	require.ErrorContains(t, Read(ForIngestor()), "it holds no seed of a NATS user")

	user, err := nkeys.CreateUser()
	require.NoError(t, err)
	seed, err := user.Seed()
	require.NoError(t, err)
	alone := fmt.Sprintf("-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n", seed)
	for _, text := range []string{string(seed) + "\n", alone} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.ErrorContains(t, Read(ForIngestor()), "it holds a seed, but no JWT")
	}
	creds := fmt.Sprintf("-----BEGIN NATS USER JWT-----\ne30.e30.c2ln\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n", seed)
	require.NoError(t, os.WriteFile(path, []byte(creds), 0o600))
	require.NoError(t, Read(ForIngestor()))
}

func TestValuesOfAnotherTypeAreRefused(t *testing.T) {
	for name, says := range map[string]string{
		"MNEME_LOG_SIZE": "not a number of bytes, such as 5000000, 500MB or 20GiB", "MNEME_PARTITIONS": "not a whole number", "MNEME_TITLES": "not true or false",
		"MNEME_LLM_TIMEOUT": "not a duration such as 5s", "MNEME_LLM_INPUT_PRICE": "not a number",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "big")
			require.EqualError(t, Read(ForSummarizer()), name+`="big": `+says)
		})
	}
}

func TestTheSizeOfTheLogMayHaveAUnit(t *testing.T) {
	for text, want := range map[string]Bytes{"0": 0, "4294967296": 4 << 30, "5GB": 5_000_000_000, "20 GiB": 20 << 30} {
		t.Setenv("MNEME_LOG_SIZE", text)
		s := ForUp()
		require.NoError(t, Read(s))
		require.Equal(t, want, s.LogSize, text)
	}
	for _, text := range []string{"-1", "9e18", "16EiB", "GB"} {
		t.Setenv("MNEME_LOG_SIZE", text)
		require.ErrorContains(t, Read(ForUp()), "not a number of bytes", text)
	}
}

// secretive has a secret setting, which no program has yet.
type secretive struct {
	Common
	Token string `envconfig:"MNEME_TOKEN" secret:"true" desc:"who may read"`
}

type Common struct {
	Data string `envconfig:"MNEME_DATA" default:".mneme" desc:"where"`
}

func (*secretive) Check() error { return nil }

func TestSecretsAreNeverShown(t *testing.T) {
	require.Equal(t, []Setting{
		{"MNEME_DATA", ".mneme", FromDefault, "where"}, {"MNEME_TOKEN", "", FromDefault, "who may read"},
	}, Effective(&secretive{}, nil))
	t.Setenv("MNEME_TOKEN", "hush")
	require.Equal(t, Setting{"MNEME_TOKEN", "(set, not shown)", FromEnvironment, "who may read"}, Effective(&secretive{}, nil)[1])
	require.Equal(t, Setting{"MNEME_TOKEN", "(set, not shown)", FromFlag, "who may read"}, Effective(&secretive{Token: "hush"}, map[string]bool{"MNEME_TOKEN": true})[1])
}

func TestPasswordsInURLsAreNeverShown(t *testing.T) {
	for text, want := range map[string]string{
		"nats://127.0.0.1:4222":                     "nats://127.0.0.1:4222",
		"nats://me:hush@a:4222, nats://hush@b:4222": "nats://me:xxxxx@a:4222,nats://xxxxx@b:4222",
		"nats://me:hush@a:port":                     "nats://xxxxx@a:port",
		"nats://me:hu%zzsh@a:4222":                  "nats://xxxxx@a:4222",
		"nats://me:hu,sh@a:4222":                    "nats://xxxxx@a:4222",
		"nats://me:hu/sh@a:4222,b:1":                "nats://xxxxx@a:4222,b:1",
		"me:hush@a:4222":                            "xxxxx@a:4222",
		"hush@a":                                    "xxxxx@a",
		"nats://a:4222, hush@b":                     "nats://xxxxx@b",
		"nats://me:1,2@a":                           "nats://xxxxx@a",
		"nats://hu#sh@a":                            "nats://xxxxx@a",
		"nats://me:1?2@a":                           "nats://xxxxx@a",
		"nats://hu/sh@a:4222":                       "nats://xxxxx@a:4222",
		"bolt://me:1/2@a":                           "bolt://xxxxx@a",
		"nats://me:hu\nsh@a":                        "nats://xxxxx@a",
		".mneme":                                    ".mneme", "a,b": "a,b", "127.0.0.1:0": "127.0.0.1:0", "": "",
	} {
		require.Equal(t, want, Redacted(text))
	}
	for _, address := range []string{"nats://me:hush@a:4222", "hush@a"} {
		t.Setenv("MNEME_NATS_URL", address)
		for _, s := range Effective(ForIngestor(), nil) {
			require.NotContains(t, s.Value, "hush", s.Name)
		}
	}
	for variable, value := range map[string]string{
		"MNEME_NATS_URL": "nats://me:hush@a:port", "MNEME_NEO4J_URI": "bolt://me:hush@a:port", "MNEME_EMBEDDINGS_URL": "http://me:hush@a:port",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, value)
			t.Setenv("MNEME_STORE", "neo4j")
			t.Setenv("MNEME_EMBEDDINGS", "openai")
			err := Read(ForContextAPI())
			require.ErrorContains(t, err, variable)
			require.NotContains(t, err.Error(), "hush")
		})
	}
}

func TestAValueThatIsNoAddressIsShownAsItIs(t *testing.T) {
	values := map[string]string{"MNEME_LLM_MODEL": "claude@20240620", "MNEME_QUOTAS_FILE": "/home/me@work/quotas.yaml"}
	for variable, value := range values {
		t.Setenv(variable, value)
	}
	for _, s := range Effective(ForSummarizer(), nil) {
		if want, ok := values[s.Name]; ok {
			require.Equal(t, want, s.Value)
		}
	}
}

func TestUsagePrintsATable(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Usage(&out, "ingestor"))
	require.Contains(t, out.String(), "address of /healthz and /readyz; loopback, unless MNEME_TRUST_NETWORK is set")
	require.Contains(t, out.String(), "127.0.0.1:8421")
}

func TestAMalformedAddressIsNotAQuestionOfTokens(t *testing.T) {
	err := (&Access{}).Listen("--listen", "here", false)
	require.EqualError(t, err, `--listen="here": not an address with a port, such as 127.0.0.1:8420`)
	require.ErrorContains(t, (&Access{}).Listen("--listen", "0.0.0.0:80", false), "or require tokens")
	require.NoError(t, (&Access{}).Listen("--listen", "0.0.0.0:80", true))
}

func TestEveryVariableThatCannotBeReadIsNamed(t *testing.T) {
	for name, value := range map[string]string{
		"MNEME_PARTITIONS": "many", "MNEME_NEO4J_READ_TIMEOUT": "5", "MNEME_NEO4J_WARM": "perhaps", "MNEME_LOG_LEVEL": "loud", "MNEME_REPLICAS": "2",
	} {
		t.Setenv(name, value)
	}
	require.EqualError(t, Read(ForIngestor()), `MNEME_PARTITIONS="many": not a whole number
MNEME_NEO4J_READ_TIMEOUT="5": not a duration such as 5s
MNEME_NEO4J_WARM="perhaps": not true or false
MNEME_LOG_LEVEL="loud": not one of debug, info, warn, error`)
}

func TestADirectoryHasAName(t *testing.T) {
	t.Setenv("MNEME_DATA", "")
	require.EqualError(t, Read(ForIngestor()), `MNEME_DATA="": must not be empty: name a directory, such as .mneme`)
}

func TestMistakesAreNamedInTheSameOrderEachTime(t *testing.T) {
	a := Access{Audience: "mneme", ClientID: "page", Claims: "claims.yaml"}
	first := a.Check().Error()
	for range 20 { // maps have no order
		require.EqualError(t, a.Check(), first)
	}
}
