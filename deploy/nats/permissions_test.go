package natsdeploy_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access/natsjwt"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
)

var update = flag.Bool("update", false, "write testdata/guarded.txt")

// permissionTenants are the tenants of the tests.
var permissionTenants = []string{"acme", "other"}

func TestPermissionsConfIsMadeFromTheTable(t *testing.T) {
	t.Parallel()
	rendered, err := natsdeploy.Permissions{Tenants: []string{"default"}}.Render()
	require.NoError(t, err)
	require.Equal(t, rendered, natsdeploy.PermissionsConf, "go generate ./cmd/mneme")
}

func TestTenantsThatCannotBeTheNameOfAUserAreRefused(t *testing.T) {
	t.Parallel()
	for _, tenants := range [][]string{{""}, {"a b"}, {"a.b"}, {`a"b`}, {"a>"}, {"a", "A"}, {"a-b", "a_b"}, {"a", "a"}, {"é"}} {
		_, err := natsdeploy.Permissions{Tenants: tenants}.Render()
		require.Error(t, err, "%q", tenants)
	}
}

// apiCalls are the calls of JetStream that name a stream.
var apiCalls = []string{
	"STREAM.CREATE", "STREAM.UPDATE", "STREAM.INFO", "STREAM.DELETE", "STREAM.PURGE", "STREAM.SNAPSHOT", "STREAM.RESTORE", "STREAM.MSG.GET", "STREAM.MSG.DELETE",
	"STREAM.PEER.REMOVE", "STREAM.LEADER.STEPDOWN", "CONSUMER.NAMES", "CONSUMER.LIST", "DIRECT.GET",
}

// consumerCalls are those that also name a consumer.
var consumerCalls = []string{
	"CONSUMER.CREATE", "CONSUMER.DURABLE.CREATE", "CONSUMER.INFO", "CONSUMER.DELETE", "CONSUMER.PAUSE", "CONSUMER.RESET", "CONSUMER.UNPIN", "CONSUMER.LEADER.STEPDOWN", "CONSUMER.MSG.NEXT",
}

// subjects returns subjects of every kind that mneme or JetStream uses.
func subjects() (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	streams := []string{natsdeploy.Stream, natsdeploy.AuditStream}
	for _, tenant := range append([]string{"third", "%all"}, permissionTenants...) {
		for _, action := range []string{natsdeploy.AuditTokensCreate, natsdeploy.AuditTokensRevoke, natsdeploy.AuditRestore, "erase", "anything"} {
			add("%s", natsdeploy.AuditSubject(tenant, action))
		}
	}
	for _, b := range []string{natsdeploy.LeaseBucket, natsdeploy.ControlBucket, natsdeploy.TokenBucket} {
		streams = append(streams, "KV_"+b)
		for _, k := range []string{"erasure", "exclusive.erase", "process.p1", "token.1f", "used.1f", "anything"} {
			add("$KV.%s.%s", b, k)
		}
	}
	streams = append(streams, "OTHER")
	add("$JS.API.INFO")
	add("$JS.API.STREAM.NAMES")
	add("$JS.API.STREAM.LIST")
	add("$JS.API.META.LEADER.STEPDOWN")
	add("$JS.API.ACCOUNT.PURGE.MNEME")
	for _, s := range streams {
		for _, c := range apiCalls {
			add("$JS.API.%s.%s", c, s)
		}
		for _, c := range consumerCalls {
			add("$JS.API.%s.%s.c1", c, s)
		}
		add("$JS.API.CONSUMER.CREATE.%s.c1.ev.0.acme.c.message_created", s)
		add("$JS.API.DIRECT.GET.%s.ev.0.acme.c.message_created", s)
		add("$JS.API.DIRECT.GET.%s.$KV.AGENT_TOKENS.token.1f", s)
		add("$JS.ACK.%s.c1.1.1.1.1.1", s)
		add("$JS.FC.%s.c1.x", s)
		add("$JS.SNAPSHOT.ACK.%s.x", s)
		add("$JS.SNAPSHOT.RESTORE.%s.x", s)
	}
	for _, p := range []string{"graph", "projects", "files", "summaries", "embeddings", "insight"} {
		add("$KV.AGENT_LEASES.lease.neo4j.%s.1.0", p)
		add("$KV.AGENT_LEASES.member.neo4j.%s.1.p1", p)
		add("$KV.AGENT_LEASES.exclusive.discard-%s", p)
		add("$KV.AGENT_CONTROL.rebuild.neo4j.%s", p)
		add("$KV.AGENT_CONTROL.lease.neo4j.%s.1.0", p)
		add("mneme-request.neo4j.%s.1.0", p)
		add("mneme-clean.neo4j.%s.1.0", p)
		add("mneme-progress.%s.0", p)
	}
	add("mneme-summarize.0")
	for _, tenant := range append([]string{"third"}, permissionTenants...) {
		for _, kind := range []string{
			events.TypeConversationStarted, events.TypeConversationUpdated, events.TypeConversationDeleted, events.TypeMessageCreated, events.TypeToolCalled,
			events.TypeToolReturned, events.TypeSummaryWritten, events.TypeToolCondensed, events.TypeProjectAliased, events.TypeContextServed, events.TypeMemoryChanged,
			events.TypeInsightWritten, events.TypeStoryWritten, events.TypeStoryWithdrawn, events.TypeLessonWithdrawn, "com.example.other",
		} {
			add("mneme.%s.c1.%s", tenant, events.Kind(kind))
			add("ev.0.%s.c1.%s", tenant, events.Kind(kind))
		}
	}
	for _, user := range append([]string{"agent-acme", "agent-other"}, roleNames()...) {
		add("%s.x.y", natsdeploy.InboxPrefix(user))
	}
	for _, s := range []string{
		">", "*", "mneme.>", "mneme.*.*.*", "mneme.acme.>", "mneme.acme.*.*", "ev.>", "$JS.API.>", "$JS.>", "$JS.EVENT.ADVISORY.API", "$JS.EVENT.ADVISORY.>", "$KV.>", "$KV.AGENT_TOKENS.>", "_INBOX.x", "_INBOX.>",
		"$SYS.>", "$SYS.REQ.SERVER.PING", "$SYS.REQ.USER.INFO", "mneme-progress.>", "mneme-request.>", "mneme-clean.>", "mneme-summarize.>", "_R_.x", "something.else",
	} {
		add("%s", s)
	}
	return list
}

func roleNames() (list []string) {
	for _, r := range natsdeploy.Roles() {
		list = append(list, r.Name)
	}
	return list
}

// raw is a connection that speaks the protocol, whose answers come in order.
type raw struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dialRaw(t *testing.T, g *natstest.Guarded, user string) *raw {
	conn, err := net.Dial("tcp", g.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(mnemetest.Patience)))
	r := &raw{t, conn, bufio.NewReader(conn)}
	info, err := r.in.ReadString('\n')
	require.NoError(t, err)
	var about struct{ Nonce string }
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(info, "INFO ")), &about))
	require.Empty(t, r.send(g.Hello(t, user, about.Nonce)))
	return r
}

var violation = regexp.MustCompile(`^-ERR 'Permissions Violation for (Publish to|Subscription to) "(.*)"`)

// send sends lines and returns the subjects that the server refused, as far as its answers show them.
func (r *raw) send(lines string) (refused []string) {
	_, err := r.conn.Write([]byte(lines + "\r\nPING\r\n"))
	require.NoError(r.t, err)
	for {
		line, err := r.in.ReadString('\n')
		require.NoError(r.t, err)
		line = strings.TrimSpace(line)
		switch m := violation.FindStringSubmatch(line); {
		case line == "PONG":
			return refused
		case m != nil:
			refused = append(refused, m[2])
		case strings.HasPrefix(line, "-ERR"):
			require.Fail(r.t, line)
		}
	}
}

// matches reports whether a permission allows a subject. Like the server, it takes the wildcards of a
// subscription for words: mneme-summarize.* also allows a subscription to mneme-summarize.>, under
// which nobody may publish anything more.
func matches(permission, subject string) bool {
	f, s := strings.Split(permission, "."), strings.Split(subject, ".")
	for i := range f {
		switch {
		case f[i] == ">":
			return i < len(s)
		case i >= len(s) || f[i] != "*" && f[i] != s[i]:
			return false
		}
	}
	return len(f) == len(s)
}

// Every user tries every subject of every other, both ways. The server must allow exactly what the table says.
func TestTheServerAllowsWhatTheTableSays(t *testing.T) {
	allowsWhatTheTableSays(t, natstest.Guard(t, permissionTenants...))
}

func TestAServerWithJWTsAllowsWhatTheTableSays(t *testing.T) {
	t.Parallel()
	allowsWhatTheTableSays(t, withJWTs(t))
}

// withJWTs starts a server in operator mode.
func withJWTs(t *testing.T) *natstest.Guarded {
	folder := natsjwt.Folder(t.TempDir())
	require.NoError(t, folder.Make(permissionTenants, false))
	return natstest.GuardWithJWTs(t, t.TempDir(), folder, permissionTenants...)
}

func allowsWhatTheTableSays(t *testing.T, g *natstest.Guarded) {
	roles := natsdeploy.Roles()
	for _, tenant := range permissionTenants {
		roles = append(roles, natsdeploy.Role{Name: natsdeploy.AgentUser(tenant), Publish: natsdeploy.AgentSubjects(tenant)})
	}
	tried, allowed, list := 0, 0, subjects()
	var book strings.Builder
	for _, role := range roles {
		conn := dialRaw(t, g, role.Name)
		for _, subject := range list {
			publishes, subscribes := true, true
			if !strings.ContainsAny(subject, "*>") {
				publishes = len(conn.send("PUB "+subject+" 0\r\n")) == 0
				expected := slices.ContainsFunc(role.Publish, func(f string) bool { return matches(f, subject) })
				if tried++; publishes {
					allowed++
				}
				require.Equal(t, expected, publishes, "%s publishes to %s", role.Name, subject)
			}
			subscribes = len(conn.send("SUB "+subject+" s\r\nUNSUB s")) == 0
			expected := slices.ContainsFunc(append(role.Subscribe, natsdeploy.InboxPrefix(role.Name)+".>"), func(f string) bool { return matches(f, subject) })
			if tried++; subscribes {
				allowed++
			}
			require.Equal(t, expected, subscribes, "%s subscribes to %s", role.Name, subject)
			if role.Name != "admin" {
				for verb, yes := range map[string]bool{"publish": publishes && !strings.ContainsAny(subject, "*>"), "subscribe": subscribes} {
					if yes && guarded.MatchString(subject) {
						fmt.Fprintf(&book, "%s %s %s\n", role.Name, verb, subject)
					}
				}
			}
		}
	}
	t.Logf("%d tried, %d allowed, all of them in the table", tried, allowed)
	require.Greater(t, tried, 5000)
	lines := strings.SplitAfter(book.String(), "\n")
	slices.Sort(lines)
	if *update {
		require.NoError(t, os.WriteFile("testdata/guarded.txt", []byte(strings.Join(lines, "")), 0o644))
	}
	wanted, err := os.ReadFile("testdata/guarded.txt")
	require.NoError(t, err)
	require.Equal(t, string(wanted), strings.Join(lines, ""), "who may do what is dangerous, apart from admin; a change of testdata/guarded.txt needs a reason")
}

// guarded matches what can change, remove or copy what others have written, or grant rights. Because the table can't
// check itself there, a file lists who may use them.
var guarded = regexp.MustCompile(`STREAM\.(CREATE|UPDATE|DELETE|PURGE|SNAPSHOT|RESTORE|MSG\.DELETE|PEER|LEADER)|RESTORE|ACCOUNT|META|DURABLE|PAUSE|RESET|\$KV|^ev\.|_deleted|_written|_withdrawn|_condensed|_aliased|_served|memory_changed|^mneme-audit|^_INBOX|SYS|ADVISORY|[>*]`)

func connectAs(t *testing.T, g *natstest.Guarded, user string) (*nats.Conn, jetstream.JetStream) {
	conn, err := g.Connect(user, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(mnemetest.Patience))
	require.NoError(t, err)
	return conn, js
}

// The server publishes its acknowledgement to whatever subject a message names for the answer,
// without asking whether the sender may publish there. Agents are in accounts of their own, where
// that subject means another.
func TestAnAgentHasNothingPublishedForItElsewhere(t *testing.T) {
	hasNothingPublishedElsewhere(t, natstest.Guard(t, permissionTenants...))
}

func TestAnAgentHasNothingPublishedForItElsewhereWithJWTs(t *testing.T) {
	t.Parallel()
	hasNothingPublishedElsewhere(t, withJWTs(t))
}

func hasNothingPublishedElsewhere(t *testing.T, g *natstest.Guarded) {
	_, admin := connectAs(t, g, "admin")
	_, err := natsdeploy.Apply(t.Context(), admin, natsdeploy.Settings{Partitions: 2, MaxBytes: 1 << 28})
	require.NoError(t, err)
	tokens, err := natsdeploy.ApplyTokens(t.Context(), admin)
	require.NoError(t, err)
	agent, agentJS := connectAs(t, g, "agent-acme")
	_, err = agentJS.Publish(t.Context(), "mneme.acme.c1.message_created", []byte("{}"))
	require.NoError(t, err, "an agent publishes, and is answered")
	_, other := connectAs(t, g, "agent-other")
	_, err = other.Publish(t.Context(), "mneme.other.c9.message_created", []byte("{}"))
	require.NoError(t, err)

	reflections := []string{
		"mneme.other.c9.message_created", "mneme.acme.c1.summary_written", "mneme.acme.c1.conversation_deleted", "$KV.AGENT_TOKENS.token.1f", "$JS.API.STREAM.PURGE.AGENT_EVENTS", "$JS.API.STREAM.DELETE.AGENT_EVENTS",
		"_R_.x", "_INBOX_context-api.x.y", "mneme-request.neo4j.graph.1.0",
	}
	watcher, _ := connectAs(t, g, "admin")
	seen, err := watcher.SubscribeSync("_INBOX_context-api.>")
	require.NoError(t, err)
	requested, err := watcher.SubscribeSync("mneme-request.>")
	require.NoError(t, err)
	require.NoError(t, watcher.Flush())
	for _, reply := range reflections {
		require.NoError(t, agent.PublishMsg(&nats.Msg{Subject: "mneme.acme.c1.message_created", Reply: reply, Data: []byte("{}")}))
	}
	require.NoError(t, agent.Flush())
	// An acknowledged message comes after everything that was sent before it.
	last, err := agentJS.Publish(t.Context(), "mneme.acme.c1.message_created", []byte("{}"))
	require.NoError(t, err)
	require.Less(t, last.Sequence, uint64(len(reflections)+4))
	stream, err := admin.Stream(t.Context(), natsdeploy.Stream)
	require.NoError(t, err)
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	require.NoError(t, err)
	for subject, n := range info.State.Subjects {
		address, err := events.ParseSubject(subject)
		require.NoError(t, err)
		switch address.Tenant {
		case "acme":
			require.Equal(t, "message_created", address.Kind)
		case "other":
			require.Equal(t, uint64(1), n, "of the other tenant is what it published itself")
		default:
			require.Fail(t, subject)
		}
	}
	status, err := tokens.Status(t.Context())
	require.NoError(t, err)
	require.Zero(t, status.Values())
	for _, sub := range []*nats.Subscription{seen, requested} {
		pending, _, err := sub.Pending()
		require.NoError(t, err)
		require.Zero(t, pending)
	}
}

// Without accounts, NATS keeps a stream in the folder of its default account.
func TestAnExistingLogMovesToTheAccountByItsFolder(t *testing.T) {
	store := t.TempDir()
	options := embedded.ServerOptions(embedded.ServerSettings{StoreDir: store, Port: -1})
	options.NoSigs, options.NoLog = true, true
	before, err := server.NewServer(options)
	require.NoError(t, err)
	before.Start()
	require.True(t, before.ReadyForConnections(mnemetest.Patience))
	conn, err := nats.Connect(before.ClientURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(mnemetest.Patience))
	require.NoError(t, err)
	_, err = natsdeploy.Apply(t.Context(), js, natsdeploy.Settings{MaxBytes: 1 << 28})
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "mneme.acme.c1.message_created", []byte("{}"))
	require.NoError(t, err)
	conn.Close()
	before.Shutdown()
	before.WaitForShutdown()

	require.NoError(t, os.Rename(filepath.Join(store, "jetstream", "$G"), filepath.Join(store, "jetstream", natsdeploy.LogAccount)))
	_, js = connectAs(t, natstest.GuardIn(t, store, natsdeploy.Permissions{Tenants: []string{"acme"}}), "operator")
	info, err := natsdeploy.Inspect(t.Context(), js)
	require.NoError(t, err)
	require.Equal(t, uint64(1), info.Messages)
}
