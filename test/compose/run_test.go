package compose

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long partitions may take to move, or a killed program to restart.
const patience = 5 * time.Minute

func TestTheComposeFileRuns(t *testing.T) {
	if os.Getenv("MNEME_TEST_ALL") == "" {
		t.Skip("takes minutes, and a docker engine: make test-compose")
	}
	p := newProject(t)
	p.compose("up", "--detach", "--wait")
	p.outside()
	p.stamped()
	require.Len(t, p.containers("ingestor"), 1)

	published := p.imports()
	p.verifies(published)

	// Three ingestors share the partitions, and two summarizers.
	p.compose("up", "--detach", "--wait", "--scale", "ingestor=3", "--scale", "summarizer=2")
	p.shares(3)

	// One ingestor is killed while more is published, and restarts.
	half := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() { published += p.publishes(half) })
	<-half
	victim := p.containers("ingestor")[1]
	pid, err := strconv.Atoi(p.docker("inspect", "--format", "{{.State.Pid}}", victim))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL), "to kill what an engine runs, be root on its machine")
	load.Wait()
	require.Eventually(t, func() bool {
		return p.docker("inspect", "--format", "{{.RestartCount}} {{.State.Health.Status}}", victim) == "1 healthy"
	}, patience, time.Second, "the ingestor that was killed is not back")
	p.shares(3)
	p.summarizes("load-0-0")
	p.verifies(published)

	// Everything stops gracefully, within its memory, and continues with its data.
	p.compose("stop")
	for _, service := range []string{"ingestor", "file-tracker", "summarizer", "context-api", "nats", "neo4j"} {
		for _, id := range p.containers(service) {
			state := p.docker("inspect", "--format", "{{.State.ExitCode}} {{.State.OOMKilled}}", id)
			if service == "neo4j" { // Java's exit code after SIGTERM
				state = strings.Replace(state, "143", "0", 1)
			}
			require.Equal(t, "0 false", state, service)
		}
	}
	p.compose("up", "--detach", "--wait", "--scale", "ingestor=3", "--scale", "summarizer=2")
	p.outside()
	p.shares(3)
	p.verifies(published)
	for _, line := range strings.Split(p.docker("stats", "--no-stream", "--format", "{{.Name}}: {{.MemUsage}}"), "\n") {
		t.Log(line)
	}
}

// outside finds the addresses of the services on this machine.
func (p *project) outside() {
	p.t.Helper()
	p.url = "http://" + strings.TrimSpace(p.compose("port", "context-api", "8420"))
	p.nats = "nats://operator:for-local-use@" + strings.TrimSpace(p.compose("port", "nats", "4222"))
	require.Contains(p.t, p.url, "//127.0.0.1:")
	require.Contains(p.t, p.nats, "@127.0.0.1:")
}

// containers returns the containers of a service, in order.
func (p *project) containers(service string) []string {
	p.t.Helper()
	return strings.Fields(p.compose("ps", "--all", "--quiet", service))
}

// stamped programs report the commit that they were built from. The build can't find it in
// the folder of a worktree.
func (p *project) stamped() {
	p.t.Helper()
	if info, err := os.Stat(root + "/.git"); err != nil || !info.IsDir() {
		p.t.Log("not a clone: the programs are not compared with the commit")
		return
	}
	commit, err := exec.Command("git", "-C", root, "rev-parse", "HEAD").Output()
	require.NoError(p.t, err)
	var version struct{ Server struct{ Commit string } }
	p.mneme(&version, "version")
	require.Equal(p.t, strings.TrimSpace(string(commit)), version.Server.Commit)
}

// mneme runs a command against the project, on this machine.
func (p *project) mneme(into any, args ...string) {
	p.t.Helper()
	lines := p.prints(args...)
	require.NoError(p.t, json.Unmarshal([]byte(lines[len(lines)-1]), into), "%s", lines)
}

// prints returns the lines that a command of mneme prints.
func (p *project) prints(args ...string) []string {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(built(p.t).dir, "mneme"), append(args, "--json", "--url", p.url, "--nats-url", p.nats)...)
	out, err := cmd.Output()
	require.NoError(p.t, err, "mneme %s: %s%s", strings.Join(args, " "), out, cmd.Stderr)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// summarizes requests a summary of a conversation and reads it.
func (p *project) summarizes(conversation string) {
	p.t.Helper()
	var asked struct{ Written []string }
	p.mneme(&asked, "summarize", conversation)
	require.NotEmpty(p.t, asked.Written)
	var summary struct {
		Method   string
		CharsOut int `json:"chars_out"`
	}
	p.mneme(&summary, "summaries", conversation, asked.Written[0])
	require.Equal(p.t, "extractive", summary.Method)
	require.NotZero(p.t, summary.CharsOut)
}

// derived counts the events that the summarizer has published: summaries and titles.
func (p *project) derived() (n uint64) {
	p.t.Helper()
	for _, line := range p.prints("tail", "--from", "1", "--until-end", "--kind", "summary_written", "--kind", "conversation_updated") {
		var e struct{ Source string }
		if line != "" {
			require.NoError(p.t, json.Unmarshal([]byte(line), &e), "%s", line)
		}
		if e.Source == "mneme/summarizer" {
			n++
		}
	}
	return n
}

// imports imports the recorded conversations, or the repository's samples if there are none,
// and returns the number of their events.
func (p *project) imports() uint64 {
	p.t.Helper()
	dir := os.Getenv("MNEME_TEST_DATA")
	if dir == "" {
		dir = root + "/../shared/data"
	}
	from := filepath.Join(dir, "events", "claude_code.jsonl.gz")
	if _, err := os.Stat(from); err != nil {
		p.t.Logf("recorded conversations not found at %s: the samples are imported", from)
		from = root + "/internal/transcript/testdata"
	}
	begun := time.Now()
	var imported struct{ Published, Rejected uint64 }
	p.mneme(&imported, "import", from, "--wait")
	require.NotZero(p.t, imported.Published)
	p.t.Logf("imported %d events, readable after %s", imported.Published, time.Since(begun).Round(time.Millisecond))
	return imported.Published
}

// verifies that the read models match the log, which holds this many events in addition to
// the summarizer's.
func (p *project) verifies(events uint64) {
	p.t.Helper()
	type progress struct{ messages, lag uint64 }
	var last progress
	changed := time.Now()
	caughtUp := func() bool {
		var status struct {
			Stream      struct{ Messages uint64 }
			Projections []struct {
				Store, State string
				Lag          uint64
				Failed       int
			}
		}
		p.mneme(&status, "status")
		now := progress{messages: status.Stream.Messages}
		for _, s := range status.Projections {
			now.lag += s.Lag
		}
		if now != last {
			last, changed = now, time.Now()
		}
		require.GreaterOrEqual(p.t, status.Stream.Messages, events, "the log holds what was acknowledged")
		if status.Stream.Messages != events+p.derived() { // it may just be writing
			return false
		}
		for _, s := range status.Projections {
			require.Equal(p.t, "neo4j", s.Store)
			require.Zero(p.t, s.Failed)
			if s.State != "live" || s.Lag > 0 {
				return false
			}
		}
		return true
	}
	for !caughtUp() { // thousands of summaries are written in sequence
		require.Less(p.t, time.Since(changed), patience, "the read models don't catch up, or the log holds something else: %+v", last)
		time.Sleep(200 * time.Millisecond)
	}
	begun := time.Now()
	whole := func() bool {
		var verified struct {
			Equal       bool
			Projections []struct {
				Equal          bool
				Events, Behind uint64
			}
		}
		// In the container, as an operator without mneme on the machine would.
		require.NoError(p.t, json.Unmarshal([]byte(p.compose("exec", "context-api", "mneme", "verify", "--json")), &verified))
		require.True(p.t, verified.Equal)
		require.Len(p.t, verified.Projections, 4)
		behind := uint64(0)
		for _, v := range verified.Projections {
			require.True(p.t, v.Equal)
			require.NotZero(p.t, v.Events)
			behind += v.Behind
		}
		return behind == 0
	}
	for !whole() { // the summarizer has written more events since
		require.Less(p.t, time.Since(begun), patience, "the read models stay behind")
	}
	p.t.Logf("verified %d events: %s", events, time.Since(begun).Round(time.Millisecond))
}

// driven matches a line of /readyz about a partition that the program drives.
var driven = regexp.MustCompile(`(?m)^graph partition (\d+): live`)

// shares waits until this many ingestors together drive each partition once, and each of
// them at least one.
func (p *project) shares(ingestors int) {
	p.t.Helper()
	ids := p.containers("ingestor")
	require.Len(p.t, ids, ingestors)
	last := ""
	shared := func() bool {
		counts, seen := map[string]int{}, map[string]int{}
		for _, id := range ids {
			host := strings.TrimPrefix(p.docker("inspect", "--format", "{{.Name}}", id), "/")
			answer := p.try(p.command("exec", "nats", "wget", "-q", "-O", "-", "http://"+host+":8421/readyz")...)
			for _, match := range driven.FindAllStringSubmatch(answer, -1) {
				counts[host]++
				seen[match[1]]++
			}
		}
		last = fmt.Sprint(counts, seen)
		values := slices.Collect(maps.Values(seen))
		return len(counts) == ingestors && len(seen) == partitions && slices.Max(values) == 1
	}
	begun := time.Now()
	require.Eventually(p.t, shared, patience, 200*time.Millisecond, "partitions are not shared")
	p.t.Logf("partitions are shared after %s: %s", time.Since(begun).Round(time.Millisecond), last)
}

// partitions of docker-compose.yml.
const partitions = 8

// How many messages publishes sends, and how many at once.
const (
	publishers = 4
	each       = 500
)

// publishes publishes messages to the API and returns how many were acknowledged. It closes
// half once half of them are acknowledged, or no more will be.
func (p *project) publishes(half chan struct{}) (acknowledged uint64) {
	var mu sync.Mutex
	var all sync.WaitGroup
	pace := time.NewTicker(3 * time.Millisecond)
	defer pace.Stop()
	for n := range publishers {
		all.Go(func() {
			for i := range each {
				<-pace.C
				id := fmt.Sprintf("m%d", i)
				body := fmt.Sprintf(`{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"test","id":%q,"subject":"load-%d-%d",
					"data":{"message_id":%q,"role":"user","content":"What was published while one was killed?"}}`, id, n, i%8, id)
				response, err := http.Post(p.url+"/v1/events", "application/cloudevents+json", strings.NewReader(body))
				if err != nil {
					p.t.Errorf("publish: %v", err)
					return
				}
				_ = response.Body.Close()
				if response.StatusCode >= 300 {
					p.t.Errorf("publish: %s", response.Status)
					return
				}
				mu.Lock()
				if acknowledged++; acknowledged == publishers*each/2 {
					close(half)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if acknowledged < publishers*each/2 {
		close(half)
	}
	return acknowledged
}
