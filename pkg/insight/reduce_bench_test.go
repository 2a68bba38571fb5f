package insight_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/project"
)

// BenchmarkReduce keeps the rows of recorded sessions of Claude Code without a database. An operation is a batch of a
// thousand events, so cpu-ms/op is microseconds of processor time for an event. "alone" finds files and commands in calls
// itself; "beside others" is where the read models files and projects found them before, as in file-tracker and mneme up.
func BenchmarkReduce(b *testing.B) {
	var list []*events.Recorded
	path := testdata.Recording(b, "claude_code", 20_000)
	file, err := os.Open(path)
	require.NoError(b, err)
	defer file.Close()
	require.NoError(b, transcript.Read(b.Context(), file, filepath.Base(path), "neutral", func(item transcript.Item) error {
		e, err := events.Record(item.Event)
		if err != nil {
			return nil // a line that is not an event
		}
		e.Tenant, e.Seq = "t", uint64(len(list)+1)
		list = append(list, &e)
		return nil
	}))
	list = list[:len(list)/1000*1000]
	b.Run("alone", func(b *testing.B) { benchmarkReduce(b, list) })
	table, folders := files.DefaultTable(), map[string]string{}
	for _, e := range list {
		e.Share()
		switch p := e.Payload.(type) {
		case *events.ConversationStarted:
			folders[e.Subject] = project.PlaceOf(p.Project, p.Repository, p.Cwd).Folder
		case *events.ToolCalled:
			table.Did(e, folders[e.Subject])
		}
	}
	b.Run("beside others", func(b *testing.B) { benchmarkReduce(b, list) })
}

func benchmarkReduce(b *testing.B, list []*events.Recorded) {
	reducers := insight.Projection(files.DefaultTable()).Reducers
	var s stored
	defer mnemetest.ReportCPU(b)()
	for i := 0; b.Loop(); i++ {
		at := i * 1000 % len(list)
		if at == 0 {
			s = stored{map[events.ConversationID]string{}, map[insight.DayKey]insight.Row{}}
		}
		batch := list[at : at+1000]
		u := s.load(b, batch)
		for _, e := range batch {
			if reduce := reducers[e.Type]; reduce != nil {
				if err := reduce(u, e); err != nil {
					b.Fatal(err)
				}
			}
		}
		s.save(u)
	}
}

// stored is the database of the benchmark.
type stored struct {
	memories map[events.ConversationID]string
	rows     map[insight.DayKey]insight.Row
}

func (s stored) load(b *testing.B, list []*events.Recorded) *insight.Unit {
	u := insight.NewUnit()
	for _, id := range u.Begin(list) {
		if text, ok := s.memories[id]; ok {
			memory, err := insight.DecodeMemory(text)
			require.NoError(b, err)
			u.States[id].Memory, u.States[id].Key = memory, 1
		}
	}
	for _, day := range u.StoredDays(list) {
		if row, ok := s.rows[day]; ok {
			require.NoError(b, u.States[day.ID].Enter(row))
		}
	}
	return u
}

func (s stored) save(u *insight.Unit) {
	for id, state := range u.States {
		if state.Touched {
			s.memories[id] = insight.EncodeMemory(&state.Memory)
			for _, row := range state.Rows() {
				s.rows[insight.DayKey{ID: id, Day: row.Day}] = row
			}
		}
	}
}
