package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
)

// listening starts the program on an address, so that clients find it again.
func listening(t *testing.T, data, address string) *server {
	t.Helper()
	s := mnemetest.UpWith(t, "--data", data, "--listen", address)
	return &server{s, t, ready{HTTP: s.HTTP, NATS: s.NATS, Data: s.Data}}
}

func TestARebuildAndItsWaitSurviveKills(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	file, data, address := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "data"), "127.0.0.1:"+mnemetest.FreePort(t)
	recording(t, file, 7, 20, 66)
	s := listening(t, data, address)
	last := uint64(read[importer.Report](s, "import", file, "--wait").Published)
	want := read[httpapi.Verification](s, "verify")
	require.True(t, want.Equal)
	// More than one batch must be left after the first was applied.
	require.Greater(t, last, uint64(9000))

	generation, interrupted := 1, 0
	var out, errs bytes.Buffer
	for ; interrupted == 0; generation++ { // a rebuild can be over before the test gets to kill it
		require.Less(t, generation, 10, "no kill was in the middle")
		out.Reset()
		errs.Reset()
		s, interrupted = killedWhileItRebuilds(s, generation+1, last, &out, &errs)
	}
	var done rebuildList
	require.NoError(t, json.Unmarshal(out.Bytes(), &done))
	require.Len(t, done.Rebuilds, 1)
	require.Equal(t, "serving", done.Rebuilds[0].State)
	require.Contains(t, errs.String(), "waiting for the server")
	verified := read[httpapi.Verification](s, "verify")
	require.True(t, verified.Equal)
	require.Equal(t, want.Projections[0].Hash, verified.Projections[0].Hash)
	for _, p := range read[httpapi.Status](s, "status").Projections {
		want := 1
		if p.Name == "graph" {
			want = generation
		}
		require.Equal(t, want, p.Generation, p.Name)
	}
}

// killedWhileItRebuilds has a client rebuild the graph, and kills the server up to four times until the generation serves. It
// returns the server that runs then, and how many kills were in the middle of the log.
func killedWhileItRebuilds(s *server, generation int, last uint64, out, errs *bytes.Buffer) (running *server, interrupted int) {
	t := s.t
	t.Helper()
	asked := func() (times string) {
		response, err := http.Get(s.ready.HTTP + "/metrics")
		if err != nil {
			return ""
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return string(regexp.MustCompile(`request_duration_seconds_count\{http_request_method="POST",[^}]*http_route="/v1/rebuilds".*`).Find(text))
	}
	path, err := mnemetest.Binary()
	require.NoError(t, err)
	client := exec.Command(path, "rebuild", "graph", "--json", "--url", s.ready.HTTP)
	client.Stdout, client.Stderr = out, errs
	before := asked()
	require.NoError(t, client.Start())
	require.Eventually(t, func() bool { return asked() != before }, mnemetest.Patience, 10*time.Millisecond, "it has an answer, and waits")
	generations := sqlitestore.NewGenerations(filepath.Join(s.ready.Data, "models"))
	applied := func() uint64 {
		cps, err := generations.Checkpoints(t.Context(), "graph", generation)
		if err != nil || len(cps) == 0 {
			return 0
		}
		return cps[0].Seq
	}
	serves := func() bool {
		b, err := generations.Builds(t.Context(), "graph")
		return err == nil && b.Serving == generation
	}
	for kills, reached := 0, uint64(0); kills < 4 && !serves(); kills++ {
		require.Eventually(t, func() bool { return applied() > reached || serves() }, mnemetest.Patience, 5*time.Millisecond)
		s.kill()
		now := applied()
		require.GreaterOrEqual(t, now, reached, "it began again")
		if reached = now; reached < last {
			interrupted++
		}
		s = listening(t, s.ready.Data, strings.TrimPrefix(s.ready.HTTP, "http://"))
	}
	require.Eventually(t, serves, mnemetest.Patience, 10*time.Millisecond)
	require.NoError(t, client.Wait(), "%s", errs)
	return s, interrupted
}

func TestRebuildOutputAndExitCodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a.jsonl")
	recording(t, file, 8, 2, 10)
	s := up(t, filepath.Join(dir, "data"))
	read[importer.Report](s, "import", file, "--wait")

	stdout, stderr, code := s.mneme("rebuild", "all")
	require.Equal(t, exitDone, code, stderr)
	require.Equal(t, strings.Join(readmodel.Always(), ": rebuilt, generation 2 serves\n")+": rebuilt, generation 2 serves\n", stdout)
	_, stderr, code = s.mneme("rebuild", "all", "--cancel")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no rebuild is under way")
	_, stderr, code = s.mneme("rebuild", "everything")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, `"`+strings.Join(readmodel.Names(), `", "`)+`", "all"`)
	_, stderr, code = s.mneme("rebuild", "embeddings") // no embedding endpoint
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `"embeddings": known are `+strings.Join(readmodel.Always(), ", ")+`, and all`)

	stdout, stderr, code = s.mneme("rebuild", "files", "--no-wait")
	require.Equal(t, exitDone, code, stderr)
	require.Contains(t, stdout, "files: generation 3 is being built, at sequence ")
	require.Eventually(t, func() bool {
		response, err := http.Get(s.ready.HTTP + "/v1/rebuilds")
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		var list rebuildList
		if json.NewDecoder(response.Body).Decode(&list) != nil {
			return false
		}
		for _, r := range list.Rebuilds {
			if r.Projection == "files" {
				return r.Generation == 3 && r.State == "serving"
			}
		}
		return false
	}, mnemetest.Patience, 10*time.Millisecond)

	// A stray file there is not mistaken for a started generation.
	require.NoError(t, os.WriteFile(sqlitestore.Path(filepath.Join(s.ready.Data, "models"), "files", 4), nil, 0o600))
	stdout, stderr, code = s.mneme("rebuild", "files")
	require.Equal(t, exitDone, code, stderr)
	require.Contains(t, stdout, "generation 5 serves")
}

func TestTheProgressOfSeveralRebuildsDoesNotShrinkWhenOneEnds(t *testing.T) {
	t.Parallel()
	far := howFar{}
	building, serving := string(rebuild.Building), string(rebuild.Serving)
	applied, total := far.add([]httpapi.Rebuild{{Projection: "graph", State: building, Applied: 40, Total: 100}, {Projection: "files", State: building, Applied: 90, Total: 100}})
	require.EqualValues(t, []uint64{130, 200}, []uint64{applied, total})
	applied, total = far.add([]httpapi.Rebuild{{Projection: "graph", State: building, Applied: 50, Total: 101}, {Projection: "files", State: serving}})
	require.EqualValues(t, []uint64{150, 201}, []uint64{applied, total})
}
