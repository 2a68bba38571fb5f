package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/audit"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/mnemetest/netlink"
)

// patience is how long anything may take on a busy machine.
const patience = mnemetest.Patience

// bundle is a server with a log, and a trail on it.
type bundle struct {
	testing.TB
	server *embedded.Server
	conn   *nats.Conn
	trail  *audit.Trail
	lost   atomic.Int64
}

func setup(t testing.TB) *bundle {
	t.Helper()
	b := &bundle{TB: t}
	b.server, b.conn = natstest.Alone(t, embedded.Config{Listen: "127.0.0.1:0"}, natsdeploy.Settings{MaxBytes: 64 << 20})
	b.open()
	return b
}

func (b *bundle) open() {
	b.Helper()
	var err error
	b.trail, err = audit.Open(b.Context(), b.conn, audit.Config{Count: func(_, lost int) { b.lost.Add(int64(lost)) }, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	b.Cleanup(b.trail.Close)
}

func (b *bundle) js() jetstream.JetStream {
	js, err := jetstream.New(b.conn)
	require.NoError(b, err)
	return js
}

// list returns all entries, read in small pages, each as "tenant subject action target outcome count".
func (b *bundle) list(q audit.Query) (list []string) {
	b.Helper()
	q.Limit = 3
	for {
		page, err := b.trail.List(b.Context(), q)
		require.NoError(b, err)
		for _, e := range page.Entries {
			list = append(list, strings.Join(strings.Fields(fmt.Sprint(e.Tenant, " ", e.Subject, " ", e.Action, " ", e.Target, " ", e.Outcome, " ", e.Count)), " "))
		}
		if !page.More {
			return list
		}
		require.Greater(b, page.Next, q.After, "a page goes on")
		q.After = page.Next
	}
}

func search(tenant, who string) audit.Entry {
	return audit.Entry{Time: time.Now(), Tenant: tenant, Subject: who, Via: audit.ViaHTTP, Action: "search", Outcome: audit.Done, Status: 200, Request: fmt.Sprint(time.Now().UnixNano())}
}

func TestAChangeIsStoredBeforeAndAfterItTakesEffect(t *testing.T) {
	t.Parallel()
	b := setup(t)
	end, err := b.trail.Change(t.Context(), audit.Entry{Time: time.Now(), Subject: "token:1", Role: "admin", Via: audit.ViaHTTP, Tenant: "a", Action: "erase", Target: "conversation:c1", Request: "r"})
	require.NoError(t, err)
	require.Equal(t, []string{"a token:1 erase conversation:c1 begun 0"}, b.list(audit.Query{}))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	end(202)
	_, err = b.trail.Change(canceled, search("a", "token:1"))
	require.ErrorIs(t, err, audit.ErrAway)
	require.Equal(t, []string{"a token:1 erase conversation:c1 begun 0", "a token:1 erase conversation:c1 done 0"}, b.list(audit.Query{}))
}

func TestAChangeThatCannotBeRecordedIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.js().DeleteStream(mnemetest.Context(t), natsdeploy.Stream))
	require.NoError(t, b.js().DeleteStream(mnemetest.Context(t), natsdeploy.AuditStream))
	_, err := b.trail.Change(t.Context(), search("a", "token:1"))
	require.ErrorIs(t, err, audit.ErrAway)
	acted := false
	err = b.trail.Around(t.Context(), func() error { acted = true; return nil }, search("a", "token:1"))
	require.ErrorIs(t, err, audit.ErrAway)
	require.False(t, acted)
	require.Empty(t, b.list(audit.Query{}), "without a stream there are no entries")
}

func TestALostAuditLogIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.js().DeleteStream(mnemetest.Context(t), natsdeploy.AuditStream))
	failure := errors.New("no")
	require.ErrorIs(t, b.trail.Around(t.Context(), func() error { return failure }, search("a", "os:x")), failure)
	require.Equal(t, []string{"a os:x search begun 0", "a os:x search failed 0"}, b.list(audit.Query{}))
	page, err := b.trail.List(t.Context(), audit.Query{After: 1000, Limit: 10})
	require.NoError(t, err)
	require.Len(t, page.Entries, 2, "who followed the lost one begins with the new one")
}

func TestWhatIsRepeatedWithinAMinuteIsCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 500 {
		b.trail.Read(search("a", "token:1"))
	}
	b.trail.Read(search("a", "token:2"))
	b.trail.Read(search("b", "token:1"))
	require.Eventually(t, func() bool { return len(b.list(audit.Query{})) == 3 }, patience, 10*time.Millisecond, "the first of each is stored at once")
	b.trail.Close()
	require.ElementsMatch(t, []string{"a token:1 search done 0", "a token:2 search done 0", "b token:1 search done 0", "a token:1 search done 499"}, b.list(audit.Query{}), "closing stores the counts")
	require.Zero(t, b.lost.Load())
}

func TestReadsGoOnWhileTheAuditLogIsAwayAndTheirEntriesComeLate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.js().DeleteStream(mnemetest.Context(t), natsdeploy.AuditStream))
	log, err := b.js().Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	config := log.CachedInfo().Config
	require.NoError(t, b.js().DeleteStream(mnemetest.Context(t), natsdeploy.Stream)) // without the log, the audit log is not made
	for i := range 3000 {
		b.trail.Read(search("a", fmt.Sprint("token:", i)))
	}
	lost := b.lost.Load()
	require.Positive(t, lost, "the queue is bounded")
	_, err = b.js().CreateStream(mnemetest.Context(t), config)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		said := b.list(audit.Query{Action: audit.ActionLost})
		return len(said) > 0 && said[0] == fmt.Sprintf("mneme entries-lost failed %d", lost)
	}, patience, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		page, err := b.trail.List(t.Context(), audit.Query{Tenant: "a", Limit: 3000})
		require.NoError(t, err)
		return len(page.Entries) == 3000-int(lost)
	}, patience, 50*time.Millisecond)
}

func TestAListIsFilteredAndContinues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, e := range []audit.Entry{
		{Tenant: "a", Subject: "token:1", Action: "erase", Target: "conversation:c1"},
		{Tenant: "a.b *", Subject: "oidc:x", Action: "search"},
		{Subject: "token:1", Action: "rebuild", Target: "graph"},
		{Tenant: "a", Subject: "oidc:x", Action: "read-project-context", Target: audit.Project("/home/me/shop")},
		{Tenant: "%all", Subject: "token:1", Action: "erase"},
	} {
		e.Time, e.Outcome = time.Now(), audit.Done
		require.NoError(t, b.trail.Write(t.Context(), e))
	}
	_, err := b.conn.Request(natsdeploy.AuditSubject("a", "forged"), []byte("no JSON"), patience)
	require.NoError(t, err)
	project := audit.Project("/home/me/shop")
	require.NotContains(t, project, "shop")
	for name, want := range map[string]struct {
		audit.Query
		list []string
	}{
		"of a tenant":                {audit.Query{Tenant: "a"}, []string{"a token:1 erase conversation:c1 done 0", "a oidc:x read-project-context " + project + " done 0"}},
		"of a tenant to be escaped":  {audit.Query{Tenant: "a.b *"}, []string{"a.b * oidc:x search done 0"}},
		"a name that looks like all": {audit.Query{Tenant: "%all"}, []string{"%all token:1 erase done 0"}},
		"of an action":               {audit.Query{Action: "erase"}, []string{"a token:1 erase conversation:c1 done 0", "%all token:1 erase done 0"}},
		"of somebody":                {audit.Query{Subject: "oidc:x"}, []string{"a.b * oidc:x search done 0", "a oidc:x read-project-context " + project + " done 0"}},
		"about a project":            {audit.Query{Project: "/home/me/shop"}, []string{"a oidc:x read-project-context " + project + " done 0"}},
		"of the future":              {audit.Query{Since: time.Now().Add(time.Hour)}, nil},
		"of both":                    {audit.Query{Action: "erase", Tenant: "a", Subject: "token:1", Since: time.Now().Add(-time.Hour)}, []string{"a token:1 erase conversation:c1 done 0"}},
	} {
		require.Equal(t, want.list, b.list(want.Query), name)
	}
	require.Len(t, b.list(audit.Query{}), 5)
	page, err := b.trail.List(t.Context(), audit.Query{Limit: 10})
	require.NoError(t, err)
	require.EqualValues(t, 6, page.Next)
	require.False(t, page.More)
	page, err = b.trail.List(t.Context(), audit.Query{After: page.Next, Limit: 10})
	require.NoError(t, err)
	require.Empty(t, page.Entries)
	require.EqualValues(t, 6, page.Next)
}

func TestAListIsWholeAlthoughTheServerIsFarAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 3 {
		require.NoError(t, b.trail.Write(t.Context(), search("a", fmt.Sprint("token:", i))))
	}
	link, err := netlink.New(strings.TrimPrefix(b.server.ClientURL(), "nats://"))
	require.NoError(t, err)
	t.Cleanup(link.Close)
	conn, err := nats.Connect("nats://"+link.Address(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	far, err := audit.NewWriter(conn, 0)
	require.NoError(t, err)
	link.Delay(600 * time.Millisecond) // each way: the client's own patience with a request for messages is one second
	page, err := far.List(t.Context(), audit.Query{Limit: 10})
	require.NoError(t, err)
	require.Len(t, page.Entries, 3)
	require.False(t, page.More)
}

func TestNobodyRemovesSingleEntries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.trail.Write(t.Context(), search("a", "token:1")))
	stream, err := b.js().Stream(mnemetest.Context(t), natsdeploy.AuditStream)
	require.NoError(t, err)
	require.Error(t, stream.DeleteMsg(mnemetest.Context(t), 1))
	require.Error(t, stream.SecureDeleteMsg(mnemetest.Context(t), 1))
	require.Error(t, stream.Purge(mnemetest.Context(t)))
	_, age, err := natsdeploy.ApplyAudit(mnemetest.Context(t), b.js(), time.Hour)
	require.NoError(t, err)
	require.Equal(t, natsdeploy.DefaultAuditAge, age, "what exists is not changed")
}

// Each role of the NATS server can write exactly the entries that it may.
func TestTheRolesWriteTheirEntries(t *testing.T) {
	g := natstest.Guard(t, "acme")
	as := func(user string) *nats.Conn {
		conn, err := nats.Connect(g.As(user), nats.CustomInboxPrefix(natsdeploy.InboxPrefix(user)), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.Timeout(mnemetest.Handshake))
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		return conn
	}
	admin, err := jetstream.New(as("admin"))
	require.NoError(t, err)
	_, err = natsdeploy.Apply(mnemetest.Context(t), admin, natsdeploy.Settings{MaxBytes: 64 << 20})
	require.NoError(t, err)
	operator, err := audit.NewWriter(as("operator"), 0)
	require.NoError(t, err)
	e := search("acme", "os:x")
	for _, e.Action = range []string{natsdeploy.AuditTokensCreate, natsdeploy.AuditTokensRevoke} {
		require.NoError(t, operator.Write(t.Context(), e), "the operator makes the stream, and writes its own actions")
	}
	api, err := audit.Open(t.Context(), as("context-api"), audit.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(api.Close)
	require.NoError(t, api.Write(t.Context(), search("acme", "token:1")))
	page, err := api.List(t.Context(), audit.Query{Limit: 10})
	require.NoError(t, err)
	require.Len(t, page.Entries, 3)
	require.Empty(t, g.Refused())

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	e.Action = "erase"
	require.ErrorIs(t, operator.Write(ctx, e), audit.ErrAway, "an operator can't write what the API writes")
	require.Eventually(t, func() bool { return len(g.Refused()) == 1 }, patience, time.Millisecond)
}

func TestAnEntryHasNoMembersThatSayNothing(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(audit.Entry{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Via: audit.ViaHTTP, Action: "rebuild", Target: "graph", Outcome: audit.Begun})
	require.NoError(t, err)
	require.JSONEq(t, `{"time":"2026-01-02T03:04:05Z","via":"http","action":"rebuild","target":"graph","outcome":"begun"}`, string(raw))
}

// BenchmarkRead is what an audited read waits for, BenchmarkChange what a change does.
func BenchmarkRead(b *testing.B) {
	trail := setup(b).trail
	e := search("a", "token:1")
	for b.Loop() {
		trail.Read(e)
	}
}

func BenchmarkChange(b *testing.B) {
	trail := setup(b).trail
	e := search("a", "token:1")
	for b.Loop() {
		end, err := trail.Change(b.Context(), e)
		require.NoError(b, err)
		end(200)
	}
}
