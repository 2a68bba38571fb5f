package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// check returns the findings when a ledger is checked against a log.
func check(t *testing.T, log []eventlog.Message, ledger []entry) (found []string) {
	t.Helper()
	n, err := oracleOf(t, log).checkLedger(func(yield func(entry) error) error {
		for _, e := range ledger {
			if err := yield(e); err != nil {
				return err
			}
		}
		return nil
	}, func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) })
	require.NoError(t, err)
	require.LessOrEqual(t, n, len(ledger))
	return found
}

func TestACorrectLogHasNoFindings(t *testing.T) {
	t.Parallel()
	r := record(t)
	require.Empty(t, check(t, r.log, r.ledger))

	// Copies that the log's server did not drop, and events that were never acknowledged.
	r.log = append(r.log, r.log[5], r.log[6], r.log[5])
	require.Empty(t, check(t, renumber(r.log), r.ledger))
	// A repeat whose first copy was not acknowledged has the sequence of the second.
	r.ledger[5].seq = uint64(len(r.log))
	require.Empty(t, check(t, renumber(r.log), r.ledger))
}

func TestErrorsInALogAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		doctor func(log []eventlog.Message) []eventlog.Message
		says   string
	}{
		"the last event is gone": {func(log []eventlog.Message) []eventlog.Message { return log[:len(log)-1] }, "lost: "},
		"an event is gone":       {func(log []eventlog.Message) []eventlog.Message { return slices.Delete(slices.Clone(log), 10, 11) }, "lost: "},
		"all later events moved up": {func(log []eventlog.Message) []eventlog.Message {
			return renumber(slices.Delete(slices.Clone(log), 10, 11))
		}, "lost: "},
		"an event has other data": {func(log []eventlog.Message) []eventlog.Message {
			log = slices.Clone(log)
			log[10].Data = append([]byte(" "), log[10].Data...)
			return log
		}, "changed: "},
		"an event has lost a header": {func(log []eventlog.Message) []eventlog.Message {
			log = slices.Clone(log)
			header := map[string][]string{}
			for name, values := range log[10].Header {
				if name != "ce-time" {
					header[name] = values
				}
			}
			log[10].Header = header
			return log
		}, "changed: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := record(t)
			require.Contains(t, strings.Join(check(t, c.doctor(r.log), r.ledger), "\n"), c.says)
		})
	}
}

func TestEventsOutOfOrderAreFound(t *testing.T) {
	t.Parallel()
	r := record(t)
	// Two adjacent events of one conversation change places; each was acknowledged at its new
	// place.
	a, b := 9, 12
	r.log[a], r.log[b] = r.log[b], r.log[a]
	r.ledger[a].seq, r.ledger[b].seq = r.ledger[b].seq, r.ledger[a].seq
	found := check(t, renumber(r.log), r.ledger)
	require.NotEmpty(t, found)
	for _, text := range found {
		require.Contains(t, text, "out of order: ")
	}
}

func TestEventsAgainstTheRulesMustBeRefused(t *testing.T) {
	t.Parallel()
	r := record(t)
	first, _, err := r.log[0].Decode()
	require.NoError(t, err)
	other, err := events.New(first.Subject, first.Source, first.ID, &events.MessageCreated{MessageID: "other", Role: "user", Content: "something else"})
	require.NoError(t, err)
	m := r.store(t, other)
	trap := entry{trap: true, seq: m.Seq, identity: other.Identity(tenant), message: digest(m)}
	require.Empty(t, check(t, r.log, append(r.ledger, trap)))
	require.True(t, oracleOf(t, r.log).graph.failed[m.Seq])

	// An event that is marked as valid but is a copy, and a trap that is valid.
	right := trap
	right.trap, right.index = false, minEvents
	// (its identity is that of the first event, which was applied)
	require.Contains(t, strings.Join(check(t, r.log, append(r.ledger, right)), "\n"), "out of order: ")
	trap.seq, trap.identity, trap.message = r.ledger[1].seq, r.ledger[1].identity, r.ledger[1].message
	require.Contains(t, strings.Join(check(t, r.log, append(r.ledger, trap)), "\n"), "would not be refused")
}

func TestALedgerIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	r, path := record(t), filepath.Join(t.TempDir(), "ledger")
	l, err := newLedger(path)
	require.NoError(t, err)
	r.ledger[3].trap = true
	for _, e := range r.ledger {
		l.add(e)
	}
	n, last := l.acknowledged()
	require.Equal(t, len(r.ledger)-1, n)
	require.Equal(t, uint64(len(r.ledger)), last)
	require.NoError(t, l.close())
	var list []entry
	require.NoError(t, readLedger(path, func(e entry) error {
		list = append(list, e)
		return nil
	}))
	require.Equal(t, r.ledger, list)
}

func TestALoadDependsOnItsSeedAlone(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for n := range 20 {
		one, err := fixture(t, 7).conversation(n)
		require.NoError(t, err)
		again, err := fixture(t, 7).conversation(n)
		require.NoError(t, err)
		require.Equal(t, one, again)
		require.GreaterOrEqual(t, len(one), minEvents)
		require.Len(t, slices.Clone(one).clean(), len(one), "it has something that a read model refuses")
		for _, e := range one {
			require.Equal(t, one[0].Subject, e.Subject)
			require.False(t, ids[e.ID], "%s is in two conversations", e.ID)
			ids[e.ID] = true
		}
	}
}
