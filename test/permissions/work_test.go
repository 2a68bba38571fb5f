// Package permissions runs mneme's programs and commands against a NATS server on which each has the
// permissions of its role and no others.
package permissions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access/callout"
	"mneme.dev/mneme/internal/access/natsjwt"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
	"mneme.dev/mneme/internal/mnemetest/programs"
)

// patience is how long anything may take on a busy machine.
const patience = mnemetest.Patience

// system is the four programs, each with a user of its own.
type system struct {
	t           *testing.T
	nats        *natstest.Guarded
	bin, tenant string
	api         string // address of context-api
	environment []string
	token       string // of the agents, if the server lets them in by tokens
}

// The agents have tokens, about which the server asks context-api. In the next test they have passwords.
func TestEveryProgramDoesItsWorkWithItsPermissions(t *testing.T) {
	mnemetest.Long(t)
	seed := filepath.Join(t.TempDir(), "callout.nk")
	key, err := callout.MakeSeed(seed)
	require.NoError(t, err)
	public, err := key.PublicKey()
	require.NoError(t, err)
	s := newSystem(t, natsdeploy.Permissions{Tenants: []string{"acme", "other"}, Callout: public}, "MNEME_STORE=sqlite", "MNEME_DATA="+t.TempDir(), "MNEME_NATS_CALLOUT_SEED_FILE="+seed)
	s.token = s.newToken("--role", "write", "--tenant", "acme")
	s.works()
}

// Agents and programs have credentials files.
func TestEveryProgramDoesItsWorkWithItsJWT(t *testing.T) {
	mnemetest.Long(t)
	folder := natsjwt.Folder(t.TempDir())
	require.NoError(t, folder.Make([]string{"acme", "other"}, false))
	newSystemOn(t, natstest.GuardWithJWTs(t, t.TempDir(), folder, "acme", "other"), "MNEME_STORE=sqlite", "MNEME_DATA="+t.TempDir()).works()
}

func TestEveryProgramDoesItsWorkWithItsPermissionsOnNeo4j(t *testing.T) {
	mnemetest.Long(t)
	uri := neo4jtest.URI(t)
	// Others use the same Neo4j, so the tenant is new.
	tenant := fmt.Sprint("t", time.Now().UnixNano())
	s := newSystem(t, natsdeploy.Permissions{Tenants: []string{tenant, "other"}}, "MNEME_STORE=neo4j", "MNEME_NEO4J_URI="+uri, "MNEME_NEO4J_PASSWORD="+neo4jtest.Password(), "MNEME_DATA="+t.TempDir())
	s.start("ingestor", free(t)) // a second process, with which the first shares its partitions
	s.works()
}

// newSystem starts everything. The first of the tenants is that of the test.
func newSystem(t *testing.T, permissions natsdeploy.Permissions, environment ...string) *system {
	return newSystemOn(t, natstest.GuardIn(t, t.TempDir(), permissions), environment...)
}

// newSystemOn is newSystem on a server that runs.
func newSystemOn(t *testing.T, server *natstest.Guarded, environment ...string) *system {
	tenant := server.Tenants[0]
	bin, err := programs.Build("mneme.dev/mneme/cmd/ingestor", "mneme.dev/mneme/cmd/file-tracker", "mneme.dev/mneme/cmd/summarizer", "mneme.dev/mneme/cmd/context-api", "mneme.dev/mneme/cmd/mneme")
	require.NoError(t, err)
	s := &system{t: t, nats: server, bin: bin, tenant: tenant, api: free(t)}
	s.environment = append(os.Environ(), append(environment,
		"MNEME_LOG_SIZE=1000000000", "MNEME_PARTITIONS=2", "MNEME_TOKENS=true", "MNEME_URL=http://"+s.api, "MNEME_TENANT="+tenant, "MNEME_TITLES=true",
		"MNEME_MAX_CONTEXT_CHARS=30000")...)
	s.start("ingestor", free(t))
	admin := s.jetStream("admin")
	require.Eventually(t, func() bool { _, err := admin.Stream(t.Context(), natsdeploy.Stream); return err == nil }, patience, 50*time.Millisecond, "the ingestor made no log")
	for _, name := range []string{"file-tracker", "summarizer"} {
		s.start(name, free(t))
	}
	s.start("context-api", s.api)
	return s
}

func free(t *testing.T) string {
	t.Helper()
	return "127.0.0.1:" + mnemetest.FreePort(t)
}

func (s *system) jetStream(user string) jetstream.JetStream {
	connect := func() (*nats.Conn, error) { return s.nats.Connect(user) }
	if s.token != "" && user == natsdeploy.AgentUser(s.tenant) {
		connect = func() (*nats.Conn, error) {
			return nats.Connect(s.nats.ClientURL(), nats.UserInfo(user, s.token), nats.CustomInboxPrefix(natsdeploy.InboxPrefix(user)), nats.Timeout(mnemetest.Handshake))
		}
	}
	conn, err := connect()
	require.NoError(s.t, err)
	s.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(s.t, err)
	return js
}

// start starts a program as the user with its name.
func (s *system) start(name, listen string) {
	var out bytes.Buffer
	cmd := exec.Command(filepath.Join(s.bin, name))
	cmd.Env = slices.Concat(s.environment, s.nats.Environment(name), []string{"MNEME_LISTEN=" + listen})
	cmd.Stderr = &out
	require.NoError(s.t, cmd.Start())
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if s.t.Failed() {
			s.t.Logf("%s:\n%s", name, &out)
		}
	})
}

// mneme runs a command as a user of NATS, and returns what it prints.
func (s *system) mneme(user string, args ...string) string {
	s.t.Helper()
	out, err := s.try(user, args...)
	require.NoError(s.t, err, "mneme %s: %s\nrefused: %s", strings.Join(args, " "), out, strings.Join(s.nats.Refused(), "\n"))
	return out
}

func (s *system) try(user string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience) // what is refused waits for an answer
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "mneme"), args...)
	cmd.Env = slices.Concat(s.environment, s.nats.Environment(user))
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return out.String() + stderr.String(), err
	}
	return out.String(), nil
}

// conversation is long enough that a summary of it is due.
func conversation(t *testing.T, id string) (list []events.Event) {
	for n := range 40 {
		role := []string{"user", "assistant"}[n%2]
		e, err := events.New(id, "test", fmt.Sprint(n), &events.MessageCreated{MessageID: fmt.Sprint(n), Role: role, Content: fmt.Sprintf("Message %d of %s. ", n, id) + strings.Repeat("It was measured and holds. ", 60)})
		require.NoError(t, err)
		list = append(list, e)
	}
	return list
}

// publishes sends events as an agent's own NATS client would.
func (s *system) publishes(list []events.Event) {
	s.t.Helper()
	agent := s.jetStream(natsdeploy.AgentUser(s.tenant))
	for _, e := range list {
		subject, err := events.Address{Tenant: s.tenant, Conversation: e.Subject, Kind: events.Kind(e.Type)}.Subject()
		require.NoError(s.t, err)
		header, body := events.EncodeMessage(e)
		_, err = agent.PublishMsg(mnemetest.Context(s.t), &nats.Msg{Subject: subject, Header: header, Data: body})
		require.NoError(s.t, err)
	}
}

// newToken makes a token.
func (s *system) newToken(rights ...string) string {
	s.t.Helper()
	var made struct{ Token string }
	require.NoError(s.t, json.Unmarshal([]byte(s.mneme("operator", append([]string{"tokens", "create", "--json"}, rights...)...)), &made))
	return made.Token
}

func (s *system) works() {
	t := s.t
	s.environment = append(s.environment, "MNEME_TOKEN="+s.newToken("--role", "admin", "--all-tenants"))
	require.Eventually(t, func() bool {
		out, err := s.try("operator", "status", "--json")
		return err == nil && strings.Count(out, `"state":"live"`)+strings.Count(out, `"state": "live"`) >= 8
	}, patience, 200*time.Millisecond, "four read models of two partitions are not live, or the API does not know the token")
	require.Contains(t, s.mneme("operator", "tokens", "list"), "admin")

	// An agent publishes over NATS, and others over HTTP and by an import.
	s.publishes(conversation(t, "one"))
	folder := t.TempDir()
	session := `{"kind":"message","conversation_id":"two","id":"m1","role":"user","content":"What is in main.go?"}` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "session.jsonl"), []byte(session), 0o600))
	s.mneme("operator", "import", filepath.Join(folder, "session.jsonl"), "--wait")
	require.Eventually(t, func() bool {
		out, err := s.try("operator", "summaries", "one", "--json")
		return err == nil && strings.Contains(out, `"level"`)
	}, patience, 200*time.Millisecond, "no summary was written")
	s.mneme("operator", "summarize", "one")
	s.mneme("operator", "tail", "--until-end")
	require.Contains(t, s.mneme("operator", "status"), "summarizer")

	// An event that nobody can read is skipped, and retried by the projectors.
	_, err := s.jetStream(natsdeploy.AgentUser(s.tenant)).Publish(t.Context(), "mneme."+s.tenant+".broken.message_created", []byte("{}"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		out, err := s.try("operator", "failed", "list")
		return err == nil && strings.Contains(out, "broken")
	}, patience, 100*time.Millisecond, "the unreadable event is not listed")
	out, err := s.try("operator", "failed", "retry", "--conversation", "broken")
	require.Error(t, err)
	require.Contains(t, out, "failed again")

	s.mneme("operator", "rebuild", "all")
	require.Empty(t, s.nats.Refused())
	s.mneme("operator", "erase", "conversation", "one", "--yes")
	s.mneme("operator", "verify")
	require.Contains(t, s.mneme("operator", "audit"), "retry-failed")
	require.Contains(t, s.mneme("operator", "audit", "--action", "erase"), "conversation:one")

	// The log is backed up, and restored on another server.
	backup := filepath.Join(t.TempDir(), "backup")
	s.mneme("backup", "backup", "--out", backup)
	s.mneme("operator", "tokens", "revoke", "--all")
	require.Empty(t, s.nats.Refused(), "nobody was refused anything")
	second := natstest.Guard(t, s.tenant)
	s.mneme("admin", "restore", backup, "--nats-url", second.As("admin"))
	require.Empty(t, second.Refused())

	// Refusals are seen: a test that asks for none must be able to fail.
	t.Log("the server refuses the next request, and is meant to")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = s.jetStream("backup").CreateConsumer(ctx, natsdeploy.Stream, jetstream.ConsumerConfig{})
	require.Error(t, err)
	require.Eventually(t, func() bool { return len(s.nats.Refused()) > 0 }, patience, time.Millisecond)
	refused := s.nats.Refused()
	require.Len(t, refused, 1)
	require.Contains(t, refused[0], s.nats.Shown(t, "backup"))
}
