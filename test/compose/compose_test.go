package compose

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

func TestComposeFileMatchesThePrograms(t *testing.T) {
	t.Parallel()
	project, err := load(t.Context(), read(t, "docker-compose.yml"), nil)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"nats", "neo4j", "ingestor", "file-tracker", "summarizer", "context-api"}, project.ServiceNames())
	p := built(t)
	require.Empty(t, check(project, p))

	changed, err := load(t.Context(), read(t, "docker-compose.yml"), map[string]string{"NEO4J_PASSWORD": "another one", "PROGRAMS_IMAGE": "example/mneme:1"})
	require.NoError(t, err)
	require.Empty(t, check(changed, p))
	require.Equal(t, "neo4j/another one", value(changed.Services["neo4j"], "NEO4J_AUTH"))
	require.Equal(t, "example/mneme:1", changed.Services["ingestor"].Image)
}

func TestTheEnvironmentNamesTheModel(t *testing.T) {
	t.Parallel()
	model := map[string]string{"MNEME_SUMMARY_WRITER": "openai", "MNEME_LLM_MODEL": "small", "MNEME_LLM_KEY": "of the environment"}
	project, err := load(t.Context(), read(t, "docker-compose.yml"), model)
	require.NoError(t, err)
	require.Empty(t, check(project, built(t)))
	for name, s := range project.Services {
		for variable, set := range model {
			if name != "summarizer" && name != "context-api" {
				set = ""
			}
			require.Equal(t, set, value(s, variable), name)
		}
	}

	for _, name := range []string{"summarizer", "context-api"} {
		project, err = load(t.Context(), read(t, "docker-compose.yml"), map[string]string{"MNEME_CONDENSE": "clear"})
		require.NoError(t, err)
		require.Equal(t, "clear", value(project.Services[name], "MNEME_CONDENSE"), "what is written and what is shown must agree")
	}

	delete(model, "MNEME_LLM_MODEL")
	project, err = load(t.Context(), read(t, "docker-compose.yml"), model)
	require.NoError(t, err)
	require.Contains(t, strings.Join(check(project, built(t)), "\n"), "summarizer is refused by summarizer: mneme: MNEME_LLM_MODEL is empty")
	require.Contains(t, strings.Join(check(project, built(t)), "\n"), "context-api is refused by context-api: mneme: MNEME_LLM_MODEL is empty")
}

// Each of these mistakes must be found, to prove that the checks can fail.
func TestMistakesInAComposeFileAreFound(t *testing.T) {
	t.Parallel()
	p := built(t)
	for _, c := range []struct{ from, to, says string }{
		{"MNEME_PARTITIONS: 8", "MNEME_PARTITION: 8", "ingestor sets MNEME_PARTITION, which ingestor does not know"},
		{"MNEME_PARTITIONS: 8", "MNEME_PARTITIONS: 99", "ingestor is refused by ingestor: mneme: MNEME_PARTITIONS=99: not between 1 and 32"},
		{`MNEME_TRUST_NETWORK: "true"`, "GOGC: 50", "loopback only"},
		{"MNEME_STORE: neo4j", "MNEME_STORE: neo5j", `MNEME_STORE="neo5j"`},
		{"command: [ingestor]", "command: [embedder]", `ingestor runs ["embedder"], which is none of`},
		{"command: [ingestor]", "command: [ingestor, --fast]", `ingestor runs ["ingestor" "--fast"]`},
		{"[CMD, file-tracker, --healthy]", "[CMD, ingestor, --healthy]", "file-tracker does not check itself"},
		{"    healthcheck:\n      <<: *check\n      test: [CMD, bash, -c, \"exec 3<>/dev/tcp/127.0.0.1/7687\"]\n", "", "neo4j has no whole health check"},
		{"nats:2.15.2-alpine", "nats:latest", "nats runs an image without a full version: nats:latest"},
		{"nats:2.15.2-alpine", "nats:2-alpine", "nats runs an image without a full version"},
		{`["127.0.0.1:${API_PORT:-8420}:8420"]`, `["${API_PORT:-8420}:8420"]`, "context-api publishes port 8420 off loopback"},
		{`["127.0.0.1:${NATS_PORT:-4222}:4222"]`, `["0.0.0.0:${NATS_PORT:-4222}:4222"]`, "nats publishes port 4222 off loopback"},
		{"MNEME_LISTEN: 0.0.0.0:8420", "MNEME_LISTEN: 0.0.0.0:8429", "context-api publishes port 8420 and listens on 8429"},
		{"command: [ingestor]", "command: [ingestor]\n    ports: [\"127.0.0.1:8421:8421\"]", "ingestor has a port of the host"},
		{"command: [ingestor]", "command: [ingestor]\n    container_name: ingestor", "ingestor has a container_name"},
		{"command: [summarizer]", "command: [summarizer]\n    ports: [\"127.0.0.1:8423:8423\"]", "summarizer has a port of the host"},
		{"MNEME_LLM_KEY:\n", "MNEME_LLM_KEY: a key\n", "summarizer sets MNEME_LLM_KEY itself"},
		{"      MNEME_LLM_MODEL:\n", "", "summarizer is not given MNEME_LLM_MODEL of the environment"},
		{"      MNEME_CONDENSE: # as above\n", "", "context-api is not given MNEME_CONDENSE of the environment"},
		{"cap_drop: [ALL]", "cap_add: [NET_ADMIN]", "neo4j has rights of root"},
		{"mem_limit: 2g", "cpus: 1", "neo4j has no memory limit"},
		{"GOMEMLIMIT: 900MiB", "GOMEMLIMIT: 2GiB", "nats has GOMEMLIMIT=2GiB, not below its memory limit"},
		{"restart: unless-stopped", "restart: \"no\"", "nats does not start again"},
		{"stop_grace_period: 2m", "cpus: 1", "neo4j is not given time to stop"},
		{"neo4j: {condition: service_healthy}", "neo4j: {condition: service_started}", "context-api does not wait until neo4j is healthy"},
		{"MNEME_NEO4J_PASSWORD: ${NEO4J_PASSWORD:-for-local-use}", "MNEME_NEO4J_PASSWORD: something", "file-tracker has another password than Neo4j"},
		{"./deploy/nats/permissions.conf:", "./deploy/nats/other.conf:", "nats does not run with deploy/nats/permissions.conf"},
		{"./deploy/nats/server.conf:", "./deploy/nats/other.conf:", "nats does not find deploy/nats/server.conf beside deploy/nats/permissions.conf"},
		{"[--config, /etc/mneme/permissions.conf", "[--config, /etc/mneme/server.conf", "nats does not run with deploy/nats/permissions.conf"},
		{"MNEME_NATS_BACKUP_PASSWORD", "MNEME_NATS_BACKUP", "nats has no MNEME_NATS_BACKUP_PASSWORD"},
		{"nats://summarizer:${NATS_SUMMARIZER_PASSWORD", "nats://admin:${NATS_ADMIN_PASSWORD", "summarizer does not connect to NATS as itself"},
		{"NEO4J_db_lock_acquisition_timeout: 20s", "NEO4J_db_lock__acquisition_timeout: 20s", "neo4j runs without db.lock.acquisition.timeout=20s"},
		{"NEO4J_server_http_enabled: \"false\"", "NEO4J_server_http_enabled: \"true\"", "neo4j runs without server.http.enabled=false"},
		{"- nats:/data", "- nats:/store", "nats does not keep the log on a volume"},
		// Found by the loader.
		{"restart: unless-stopped", "restarts: unless-stopped", "additional properties 'restarts' not allowed"},
		{"${NATS_IMAGE:-nats:2.15.2-alpine}", "${NATS_IMAGE}", "the variable NATS_IMAGE has no default"},
		{"- context-api:/data", "- context:/data", "undefined volume context"},
		{"nats: {condition: service_healthy}", "nuts: {condition: service_healthy}", "nuts"},
	} {
		t.Run(c.to, func(t *testing.T) {
			t.Parallel()
			right := read(t, "docker-compose.yml")
			require.Contains(t, right, c.from)
			project, err := load(t.Context(), strings.ReplaceAll(right, c.from, c.to), nil)
			if err != nil {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.Contains(t, strings.Join(check(project, p), "\n"), c.says)
		})
	}
}

// These versions appear in several places and must be the same.
func TestTheImagesAreOfTheVersionsThatTheTestsRunWith(t *testing.T) {
	t.Parallel()
	file, goMod := read(t, "docker-compose.yml"), read(t, "go.mod")
	nats := regexp.MustCompile(`nats-io/nats-server/v2 v(\S+)`).FindStringSubmatch(goMod)
	require.NotNil(t, nats)
	require.Contains(t, file, "${NATS_IMAGE:-nats:"+nats[1]+"-alpine}")
	neo4j := regexp.MustCompile(`(?s)case LTS:\s+return \[\]string\{"(\S+?)"`).FindStringSubmatch(read(t, "deploy/neo4j/version.go"))
	require.NotNil(t, neo4j)
	require.Contains(t, file, "${NEO4J_IMAGE:-neo4j:"+neo4j[1]+"-community}")
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(goMod)
	require.NotNil(t, language)
	require.Contains(t, file, "${BUILD_IMAGE:-golang:"+language[1]+"}")
	require.Contains(t, read(t, "deploy/Dockerfile"), "ARG BUILD_IMAGE=golang:"+language[1]+"\n")
}

// The image must be built from files that git tracks: see .dockerignore.
func TestTheImageIsBuiltFromEveryFileOfTheCommit(t *testing.T) {
	t.Parallel()
	ignored := map[string]bool{}
	for line := range strings.Lines(read(t, ".gitignore")) {
		ignored[strings.TrimSpace(line)] = true
	}
	for line := range strings.Lines(read(t, ".dockerignore")) {
		if pattern := strings.TrimSpace(line); !strings.HasPrefix(pattern, "#") {
			require.True(t, ignored[strings.TrimPrefix(pattern, "**/")], "git does not ignore %s", pattern)
		}
	}
}
