package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
	"mneme.dev/mneme/pkg/insight"
)

// measure runs a measurement on a small recording, in a temporary directory that must
// be empty afterwards.
func measure[T any](t *testing.T, args ...string) (figures T, lines int) {
	t.Helper()
	_, err := mnemetest.Binary() // built outside the test's temporary directory
	require.NoError(t, err)
	t.Setenv("TMPDIR", t.TempDir())
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	lines = recording(t, path, 1, 3, 6)
	out, stderr, code := mneme(t, append(append([]string{"bench"}, args...), "--json", path)...)
	require.Zero(t, code, stderr)
	require.Empty(t, stderr, "no terminal, so no progress")
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&figures), out)
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
	return figures, lines
}

func TestBenchIngestComparesWithABareLoader(t *testing.T) {
	mnemetest.Long(t)
	r, lines := measure[bench.Ingest](t, "ingest", "--rounds", "2")
	require.EqualValues(t, lines, r.Events)
	require.Len(t, r.Ratios, 2)
	for _, figure := range []float64{r.MB, r.PublishPS, r.IngestPS, r.LoaderPS, r.Ratio} {
		require.Positive(t, figure)
	}
	require.Positive(t, r.Batches)
	require.Positive(t, r.Machine.Cores)
	require.Equal(t, "sqlite", r.Store.Name)
	require.Regexp(t, `^3\.`, r.Store.Version)
}

func TestBenchIngestAndReplayOnNeo4jNameItsVersion(t *testing.T) {
	on := []string{"--store", "neo4j", "--neo4j-uri", neo4jtest.URI(t), "--neo4j-password=" + neo4jtest.Password(), "--rounds", "1"}
	ingest, lines := measure[bench.Ingest](t, append([]string{"ingest"}, on...)...)
	require.EqualValues(t, lines, ingest.Events)
	require.Len(t, ingest.Ratios, 1)
	require.Equal(t, "neo4j", ingest.Store.Name)
	require.Regexp(t, `^\d+\.\d+`, ingest.Store.Version)
	for _, figure := range []float64{ingest.IngestPS, ingest.LoaderPS, ingest.Ratio} {
		require.Positive(t, figure)
	}

	replay, _ := measure[bench.Replay](t, append([]string{"replay"}, on...)...)
	require.Equal(t, ingest.Store, replay.Store)
	for _, figure := range []float64{replay.BarePS, replay.FilesPS, replay.GraphPS} {
		require.Positive(t, figure)
	}
}

func TestBenchReplayComparesWithABareConsumer(t *testing.T) {
	r, lines := measure[bench.Replay](t, "replay", "--rounds", "2")
	require.EqualValues(t, lines, r.Events)
	require.Len(t, r.FilesRatios, 2)
	require.Len(t, r.GraphRatios, 2)
	for _, figure := range []float64{r.MB, r.BarePS, r.FilesPS, r.GraphPS, r.FilesRatio, r.GraphRatio} {
		require.Positive(t, figure)
	}
}

func TestBenchRebuildComparesWithIngestAndWithoutOne(t *testing.T) {
	mnemetest.Long(t)
	r, lines := measure[bench.Rebuild](t, "rebuild", "--rounds", "2", "--rate", "100", "--warm-up", "0s", "--for", "1s")
	require.EqualValues(t, lines, r.Events)
	require.Len(t, r.Ratios, 2)
	for _, figure := range []float64{r.MB, r.IngestPS, r.RebuildPS, r.Ratio, r.P99Ratio, r.With.Pace, r.Without.Pace} {
		require.Positive(t, figure)
	}
	require.Equal(t, r.Without.Readable.Count, r.With.Readable.Count)
	require.Positive(t, r.With.Context.Count)
}

func TestBenchScaleLetsIngestorsShareALog(t *testing.T) {
	r, lines := measure[bench.Scale](t, "scale", "--ingestors", "1,2", "--rounds", "2", "--store", "neo4j", "--neo4j-uri", neo4jtest.URI(t), "--neo4j-password="+neo4jtest.Password())
	require.EqualValues(t, lines, r.Events)
	require.Equal(t, 8, r.Partitions)
	require.Len(t, r.Ingestors, 2)
	for i, n := range r.Ingestors {
		require.Equal(t, i+1, n.Count)
		require.Positive(t, n.IngestPS)
		require.Len(t, n.Ratios, 2)
	}
	require.InDelta(t, 1, r.Ingestors[0].Ratio, 0.001)
}

func TestBenchLatencyReadsBackWhatItPublished(t *testing.T) {
	r, lines := measure[bench.Latency](t, "latency", "--rate", "200", "--reads", "100", "--warm-up", "0s", "--for", "10s")
	require.Equal(t, lines, r.Events)
	require.Equal(t, 3, r.Conversations)
	require.Equal(t, lines, r.Acknowledged.Count)
	require.Equal(t, (lines+1)/2, r.Readable.Count+r.Context.Count)
	require.Equal(t, 200, r.Rate)
	require.LessOrEqual(t, r.Pace, 210.0)
	for _, l := range []bench.Latencies{r.Acknowledged, r.Readable, r.Context} {
		require.Positive(t, l.P50)
		require.LessOrEqual(t, l.P50, l.P90)
		require.LessOrEqual(t, l.P90, l.P99)
		require.LessOrEqual(t, l.P99, l.Max)
	}
}

func TestBenchLatencyAndContextOnNeo4jLeaveNothingThere(t *testing.T) {
	if !mnemetest.All {
		t.Skip("takes a minute of a server of its own: make test-all")
	}
	server := neo4jtest.Own(t)
	on := []string{"--store", "neo4j", "--neo4j-uri", server.URI()}
	latency, lines := measure[bench.Latency](t, append([]string{"latency", "--rate", "10", "--reads", "1", "--warm-up", "0s"}, on...)...)
	require.Equal(t, lines, latency.Events)
	require.Equal(t, bench.Store{Name: "neo4j", Version: server.Version()}, latency.Store)
	require.Positive(t, latency.Readable.P50)
	// They are not refused, because the previous one has left nothing.
	rebuild, lines := measure[bench.Rebuild](t, append([]string{"rebuild", "--rounds", "1", "--warm-up", "0s", "--for", "2s", "--rate", "5"}, on...)...)
	require.EqualValues(t, lines, rebuild.Events)
	require.Equal(t, latency.Store, rebuild.Store)
	require.Positive(t, rebuild.Ratio)
	contexts, _ := measure[bench.Context](t, append([]string{"context", "--rounds", "1"}, on...)...)
	require.Equal(t, &latency.Store, contexts.Store)
	require.Equal(t, 3, contexts.Warm.Count)

	t.Setenv("MNEME_STORE", "neo4j")
	t.Setenv("MNEME_NEO4J_URI", server.URI())
	up(t, t.TempDir())
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	recording(t, path, 1, 1, 1)
	for _, command := range []string{"latency", "context", "rebuild"} {
		_, stderr, code := mneme(t, "bench", command, path)
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, bench.ErrInUse.Error())
	}
}

func TestBenchContextMeasuresTheProgramAndALongConversation(t *testing.T) {
	r, lines := measure[bench.Context](t, "context", "--rounds", "2", "--conversations", "2", "--short", "1", "--max-chars", "1000")
	// recording has conversations of 6 turns, fewer than ten times ShortTurns, so none is compared.
	require.Nil(t, r.Long)
	require.Equal(t, lines, r.Program.Events)
	require.Equal(t, 2, r.Conversations)
	require.Equal(t, 3, r.Of)
	require.Equal(t, 4, r.Warm.Count)
	require.Equal(t, 2, r.Fastest.Count)
	require.LessOrEqual(t, r.Fastest.Max, r.Warm.Max)
	require.Equal(t, 1000, r.MaxChars)
	require.Equal(t, 1, r.Projects.Of)
	require.Equal(t, 2, r.Projects.Queries)
	require.Equal(t, 4, r.Projects.Took.Count)
	require.Positive(t, r.Projects.KB)
	require.Len(t, r.Insights, len(insight.By))
	for _, i := range r.Insights {
		require.Equal(t, 40, i.Took.Count)
		require.Positive(t, i.Took.P99, i.By)
	}
	for _, figure := range []float64{r.KB, r.MaxKB, r.Program.ImportPS, r.Program.ReadyEmptyMS, r.Program.ReadyMS, r.Program.ReadyKilledMS, r.Program.KilledSPerGB, r.Program.LogGB} {
		require.Positive(t, figure)
	}
	if _, err := os.Stat("/proc/self/status"); err == nil {
		for _, figure := range []*float64{r.Program.ImportCPU, r.Program.IdleMB, r.Program.ImportedMB, r.Program.PeakMB, r.Program.ReadMB} {
			require.Positive(t, *figure)
		}
	}
}

func TestBenchContextComparesALongConversationWithItsLastTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	recording(t, path, 1, 1, 30)
	out, stderr, code := mneme(t, "bench", "context", "--rounds", "1", "--short", "3", "--max-chars", "1000", "--json", path)
	require.Zero(t, code, stderr)
	var r bench.Context
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, 30, r.Long.Turns)
	require.Equal(t, 3, r.Long.ShortTurns)
	require.InDelta(t, r.Long.ShortKB, r.Long.KB, 0.5, "the newest content is the same")
	require.Positive(t, r.Long.Ratio)
	require.Equal(t, r.Long.Long.Count, r.Long.Short.Count)
}

func TestBenchContextReadsARunningServer(t *testing.T) {
	s := withTokens(t)
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	recording(t, path, 1, 3, 6)
	_, stderr, code := s.importWith(s.token("team-a", "write").Token, "--wait", path)
	require.Zero(t, code, stderr)
	reader := s.token("team-a", "read").Token
	r := read[bench.Context](s, "bench", "context", "--rounds", "1", "--token", reader)
	require.Equal(t, 3, r.Conversations)
	require.Nil(t, r.Program)
	out, stderr, code := s.mneme("bench", "context", "--rounds", "1", "--token", reader)
	require.Zero(t, code, stderr)
	require.Contains(t, out, "warm")
}

func TestBenchRecallFindsConversationsWithoutTheirTitles(t *testing.T) {
	dir := t.TempDir()
	recordings, questions := filepath.Join(dir, "recording.jsonl"), filepath.Join(dir, "questions.jsonl")
	write := func(path string, lines ...string) {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
	conversation := func(id, title, text string) string {
		return `{"kind":"conversation","conversation_id":"` + id + `","id":"` + id + `","seq":0,"meta":{"titles":["` + title + `"]}}` + "\n" +
			`{"kind":"message","conversation_id":"` + id + `","id":"` + id + `/1","seq":1,"role":"user","content":"` + text + `"}`
	}
	write(recordings, conversation("a:1", "lions", "Where do zebras live?"), conversation("a:2", "zebras", "Where do lions live?"))
	write(questions, `{"question":"zebras","evidence_conversations":["a:1"]}`, `{"question":"elephants","evidence_conversations":["a:2"]}`,
		`{"question":"lions","evidence_conversations":["a:3"]}`, `{"question":"lions"}`)
	out, stderr, code := mneme(t, "bench", "recall", "--events", recordings, "--qa", questions, "--conversations", "--json")
	require.Zero(t, code, stderr)
	var r bench.Find
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, []int{2, 2, 2, 2}, []int{r.Conversations, r.Untitled, r.Questions, r.Left})
	require.Equal(t, []float64{0.5, 0.5, 0.5}, []float64{r.Hit1, r.Hit5, r.MRR})
	require.Equal(t, 2, r.Query.Count)
	write(questions, `{"question":"lions","evidence_conversations":["a:3"]}`)
	_, stderr, code = mneme(t, "bench", "recall", "--events", recordings, "--qa", questions, "--conversations")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no question is about a conversation that was imported")
}

func TestBenchReportsWrongUsage(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for _, args := range [][]string{
		{"ingest"}, {"ingest", empty}, {"ingest", "--rounds", "0", empty}, {"ingest", "--store", "paper", empty}, {"ingest", "--neo4j-uri", "nowhere", empty}, {"replay", empty}, {"replay", filepath.Join(empty, "none")},
		{"latency", empty}, {"latency", "--rate", "0", empty}, {"latency", "--for", "1ms", empty}, {"latency", "--for", "soon", empty},
		{"rebuild", empty}, {"rebuild", "--rounds", "0", empty}, {"scale", empty}, {"scale", "--ingestors", "0", "--store", "neo4j", empty},
		{"context", empty}, {"context", "--max-chars", "1", empty}, {"context", "--url", "nowhere"},
	} {
		_, stderr, code := mneme(t, append([]string{"bench"}, args...)...)
		require.Equal(t, exitUsage, code, "%v: %s", args, stderr)
		require.NotEmpty(t, stderr)
	}
	for _, command := range []string{"ingest", "latency", "replay", "context", "rebuild", "scale"} {
		out, _, code := mneme(t, "bench", command, "--help")
		require.Zero(t, code)
		require.Contains(t, out, "temporary directory")
	}
}
