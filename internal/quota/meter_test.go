package quota

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/pkg/eventlog"
)

// bench is a log on a real server, and a meter that counts when it is told to.
type bench struct {
	testing.TB
	log  *eventlog.Log
	path string
	n    int
}

func setup(t testing.TB) *bench {
	t.Helper()
	_, conn := natstest.Alone(t, embedded.Config{}, natsdeploy.Settings{MaxBytes: 64 << 20, Partitions: 3})
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	return &bench{TB: t, log: log, path: filepath.Join(t.TempDir(), "stored.json")}
}

func (b *bench) meter() *Meter { return NewMeter(b.log, b.path, slog.New(slog.DiscardHandler)) }

func (b *bench) events(n int) []events.Event {
	list := make([]events.Event, n)
	for i := range list {
		b.n++
		var err error
		list[i], err = events.New(fmt.Sprint("c", b.n%7), "test", fmt.Sprint(b.n), &events.MessageCreated{MessageID: fmt.Sprint(b.n), Role: "user", Content: strings.Repeat("x", b.n%300)})
		require.NoError(b, err)
	}
	return list
}

func (b *bench) publish(tenant string, n int) {
	b.Helper()
	_, err := b.log.PublishAll(mnemetest.Context(b), tenant, b.events(n))
	require.NoError(b, err)
}

// counted returns what a meter has counted.
func counted(m *Meter) map[string]Stored {
	all, _ := m.tenants()
	return all
}

// stored returns what the log holds of each tenant, read from it.
func (b *bench) stored() map[string]Stored {
	b.Helper()
	all := map[string]Stored{}
	state, err := b.log.State(mnemetest.Context(b))
	require.NoError(b, err)
	require.NoError(b, b.log.ScanAll(mnemetest.Context(b), 1, state.Head, func(m eventlog.Message) error {
		a, err := events.ParseSubject(m.Subject)
		require.NoError(b, err)
		all[a.Tenant] = all[a.Tenant].plus(Stored{1, m.StoredBytes()})
		return nil
	}))
	return all
}

func TestAMeterCountsWhatTheLogHoldsAndGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish("a", 250)
	b.publish("b.c", 40)
	m := b.meter()
	require.NoError(t, m.count(t.Context()))
	require.Equal(t, b.stored(), counted(m))
	require.EqualValues(t, 250, m.used("a").Events)
	require.EqualValues(t, 40, m.used("b.c").Events, "a name that subjects escape")
	state, err := b.log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.Equal(t, state.Bytes, m.used("a").plus(m.used("b.c")).Bytes)
	require.NoError(t, m.save())

	b.publish("a", 5)
	again := b.meter()
	require.EqualValues(t, 250, again.used("a").Events, "before anything was read")
	require.NoError(t, again.count(t.Context()))
	require.EqualValues(t, 255, again.used("a").Events)
	require.Equal(t, b.stored(), counted(again))

	for text, why := range map[string]string{
		`{"created":"2020-01-01T00:00:00Z","seq":3,"gone":0,"tenants":{"a":{"events":9,"bytes":9}}}`: "of another log",
		`{"created":`: "damaged", "": "empty",
	} {
		require.NoError(t, os.WriteFile(b.path, []byte(text), 0o600))
		fresh := b.meter()
		require.Zero(t, fresh.used("a"), why)
		require.NoError(t, fresh.count(t.Context()))
		require.Equal(t, b.stored(), counted(fresh), why)
	}
}

func TestWhatLeavesTheLogMakesRoom(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish("a", 30)
	b.publish("b", 10)
	m := b.meter()
	require.NoError(t, m.count(t.Context()))
	js, err := jetstream.New(b.log.Conn())
	require.NoError(t, err)
	stream, err := js.Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	for seq := range uint64(20) {
		require.NoError(t, stream.DeleteMsg(mnemetest.Context(t), seq+1))
	}
	require.NoError(t, m.count(t.Context()))
	require.EqualValues(t, 30, m.used("a").Events, "it may still go on")
	require.NoError(t, m.count(t.Context()))
	require.EqualValues(t, 10, m.used("a").Events)
	require.Equal(t, b.stored(), counted(m))

	require.NoError(t, stream.DeleteMsg(mnemetest.Context(t), 40))
	require.NoError(t, m.count(t.Context()))
	require.NoError(t, m.count(t.Context()))
	require.EqualValues(t, 10, m.used("b").Events, "it was counted again a moment ago")
	m.again = time.Time{}
	require.NoError(t, m.count(t.Context()))
	require.EqualValues(t, 9, m.used("b").Events)
}

func TestNobodyStoresMoreThanTheQuotaAllows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(r *rapid.T) {
		tenant := fmt.Sprint("t", b.n)
		limit := rapid.IntRange(1, 60).Draw(r, "max_events")
		m := b.meter()
		require.NoError(t, m.count(t.Context()))
		q := &Quotas{limits: file{Default: Limits{MaxEvents: uint64(limit)}}, meter: m}
		type publish struct {
			list   []events.Event
			settle func()
		}
		var open []publish
		stored, refused := 0, false
		r.Repeat(map[string]func(*rapid.T){
			"ask": func(r *rapid.T) {
				n := rapid.IntRange(1, 20).Draw(r, "events")
				settle, err := q.Hold(tenant, n, n*10)
				if err != nil {
					refused = true
					var full *FullError
					require.ErrorAs(t, err, &full)
					require.Equal(t, "max_events", full.Quota)
					return
				}
				open = append(open, publish{b.events(n), settle})
			},
			"store": func(r *rapid.T) {
				if len(open) == 0 {
					r.Skip()
				}
				if _, err := b.log.PublishAll(mnemetest.Context(t), tenant, open[0].list); err != nil {
					r.Fatal(err)
				}
				stored += len(open[0].list)
				open[0].settle()
				open = open[1:]
			},
			"fail": func(r *rapid.T) {
				if len(open) == 0 {
					r.Skip()
				}
				open[0].settle()
				open[0].settle() // once counts
				open = open[1:]
			},
			"count": func(*rapid.T) { require.NoError(t, m.count(t.Context())) },
			"restart": func(r *rapid.T) {
				if len(open) > 0 {
					r.Skip()
				}
				m = b.meter()
				require.NoError(t, m.count(t.Context()))
				q.meter = m
			},
			"": func(r *rapid.T) {
				if stored > limit {
					r.Fatalf("%d stored, %d are allowed", stored, limit)
				}
				if got := int(m.used(tenant).Events); got < stored {
					r.Fatalf("%d stored, %d counted", stored, got)
				}
			},
		})
		for _, p := range open {
			p.settle()
		}
		require.NoError(t, m.count(t.Context()))
		require.EqualValues(t, stored, m.used(tenant).Events, "what was settled and not stored is given back")
		_, err := q.Hold(tenant, limit-stored+1, 0)
		require.Error(t, err)
		settle, err := q.Hold(tenant, limit-stored, 0)
		require.NoError(t, err, "refused before: %v", refused)
		settle()
	})
}

func TestBytesAreBoundedToo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.meter()
	q := &Quotas{limits: file{Tenants: map[string]Limits{"a": {MaxBytes: 10_000}}}, meter: m}
	for range 100 {
		list := b.events(1)
		settle, err := q.Hold("a", 1, len(list[0].Data))
		if err != nil {
			require.ErrorContains(t, err, `the tenant "a" is over its quota max_bytes: it stores `)
			require.ErrorContains(t, err, "of 10000 bytes, which leaves no room for ")
			require.ErrorContains(t, err, "Waiting does not help: erase")
			break
		}
		_, err = b.log.PublishAll(mnemetest.Context(t), "a", list)
		require.NoError(t, err)
		settle()
		require.NoError(t, m.count(t.Context()))
	}
	used := b.stored()["a"].Bytes
	require.LessOrEqual(t, used, uint64(10_000))
	require.Greater(t, used, uint64(8_000))
	settle, err := q.Hold("b", 1e6, 1e9)
	require.NoError(t, err, "no limit")
	settle()
}

func TestARunningMeterCountsWhileAQuotaNeedsItAndKeepsItsFigures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish("a", 12)
	q := open(t, "default: {events_per_second: 1000}")
	m := b.meter()
	q.Count(m)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		q.Run(ctx, slog.New(slog.DiscardHandler))
	}()
	time.Sleep(1500 * time.Millisecond)
	require.Empty(t, counted(m), "no quota bounds what is stored")
	require.Equal(t, Report{}, q.Report(), "neither")
	require.NoError(t, os.WriteFile(q.path, []byte("tenants: {a: {max_events: 12, requests: 2}, new: {max_bytes: 5}}"), 0o600))
	require.Eventually(t, func() bool {
		r := q.Report()
		return len(r.Tenants) == 2 && !r.Counting
	}, mnemetest.Patience, 20*time.Millisecond)
	_, err := q.Hold("a", 1, 1)
	require.Error(t, err)
	leave, err := q.Enter("a", true)
	require.NoError(t, err)
	defer leave()
	require.Equal(t, []Tenant{
		{"a", true, []Use{{"requests", 1, 2}, {"max_events", 12, 12}, {"max_bytes", float64(b.stored()["a"].Bytes), 0}}},
		{"new", true, []Use{{"max_bytes", 0, 5}}},
	}, q.Report().Tenants)
	stop()
	<-ended
	require.Equal(t, b.stored(), counted(b.meter()))
}
