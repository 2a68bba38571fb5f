package files

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mneme.dev/mneme/internal/testdata"
)

// conversation is a recorded conversation as these tests replay it.
type conversation struct {
	cwd     string
	events  []testdata.Event // by seq
	results map[string]testdata.Event
}

func conversations(events func(func(testdata.Event) bool)) map[string]*conversation {
	all := map[string]*conversation{}
	for e := range events {
		c := all[e.ConversationID]
		if c == nil {
			c = &conversation{results: map[string]testdata.Event{}}
			all[e.ConversationID] = c
		}
		switch {
		case e.Kind == "conversation":
			c.cwd = e.MetaText("cwd")
		case e.Kind == "tool_result" && len(e.ParentIDs) > 0:
			c.results[e.ParentIDs[0]] = e
		}
		c.events = append(c.events, e)
	}
	for _, c := range all {
		slices.SortFunc(c.events, func(a, b testdata.Event) int { return a.Seq - b.Seq })
	}
	return all
}

func failed(e testdata.Event) bool { return e.Success != nil && !*e.Success }

func (c *conversation) call(e testdata.Event) Call {
	cwd := c.cwd
	if own := e.MetaText("cwd"); own != "" {
		cwd = own
	}
	return Call{Tool: e.ToolName, Arguments: e.Arguments, Cwd: cwd}
}

// accesses returns what the package finds in a call and, unless it failed, in its result.
func (c *conversation) accesses(t *Table, e testdata.Event) []Access {
	call := c.call(e)
	found := t.FromCall(call)
	if r, ok := c.results[e.ID]; ok && !failed(r) {
		found = append(found, t.FromResult(call, r.Text(), nil)...)
	}
	return found
}

// tally compares labeled calls with ours, for reads, writes, and searches that name a path.
type tally struct {
	labelled, exact int
	behindCD        int // the label ignores a cd in the command; our path includes it
	ofFailed        int // label of a failed call, which by our rule accesses nothing
	missed, extra   []string
}

func (n tally) share() float64 {
	return 100 * float64(n.exact+n.behindCD) / float64(max(n.labelled-n.ofFailed, 1))
}

func compare(all map[string]*conversation) tally {
	var n tally
	table := DefaultTable()
	for _, id := range slices.Sorted(maps.Keys(all)) {
		c := all[id]
		for _, e := range c.events {
			if e.Kind != "tool_call" {
				continue
			}
			ours := c.accesses(table, e)
			used := map[Access]bool{}
			for _, f := range e.Files {
				n.labelled++
				want := Access{Path: Normalise(c.call(e).Cwd, f.Path), Kind: reportedKinds[f.Op]}
				i := slices.IndexFunc(ours, func(a Access) bool {
					return a.Kind == want.Kind && !strings.HasPrefix(f.Path, "/") && strings.HasSuffix(a.Path, "/"+f.Path)
				})
				switch {
				case slices.Contains(ours, want):
					used[want] = true
					n.exact++
				case i >= 0:
					used[ours[i]] = true
					n.behindCD++
				case failed(c.results[e.ID]):
					n.ofFailed++
				default:
					n.missed = append(n.missed, e.ToolName+" "+f.Op+" "+f.Path+"  <=  "+clip(string(e.Arguments)))
				}
			}
			for _, a := range ours {
				if !used[a] && (a.Kind == KindRead || a.Kind == KindWrite) {
					n.extra = append(n.extra, e.ToolName+" "+string(a.Kind)+" "+a.Path+"  <=  "+clip(string(e.Arguments)))
				}
			}
		}
	}
	return n
}

func clip(s string) string { return s[:min(len(s), 220)] }

// A regular expression made the labels of shell calls: it reads "/r/.git" in "cat
// /r/.git/HEAD" and "~/.gitconfi" in "~/.gitconfig", takes a glob's folder for the glob,
// and ignores cd. Ours can't agree with those. SHOW=1 in the environment prints labels
// without accesses and accesses without labels.
func TestLabeledFilesOfRecordedCallsAreFound(t *testing.T) {
	for _, agent := range []struct {
		name  string
		floor float64 // percent of labeled (call, path, kind)
	}{
		{"claude_code", 99.5}, {"pi", 99.5}, {"codex", 99.5}, {"gemini_cli", 99.5}, {"swe_agent", 98}, {"openhands", 99.5},
	} {
		t.Run(agent.name, func(t *testing.T) {
			n := compare(conversations(testdata.Events(t, agent.name)))
			t.Logf("%d labels: %d exact, %d below the folder of a cd that the label ignores, %d of failed calls: %.2f %%; %d missed; %d reads and writes without a label",
				n.labelled, n.exact, n.behindCD, n.ofFailed, n.share(), len(n.missed), len(n.extra))
			if os.Getenv("SHOW") != "" {
				t.Logf("missed:\n%s\nwithout a label:\n%s", strings.Join(n.missed, "\n"), strings.Join(n.extra, "\n"))
			}
			if n.share() < agent.floor {
				t.Errorf("%.2f %% of the labels found, want at least %.2f", n.share(), agent.floor)
			}
		})
	}
}

// point is a labeled answer to "which files were accessed last?".
type point struct {
	ConversationID string `json:"conversation_id"`
	AtSeq          int    `json:"at_seq"`
	RecentFiles    []struct {
		Path string `json:"path"`
		Op   string `json:"op"`
		OK   bool   `json:"ok"`
	} `json:"recent_files"`
}

const recentFiles = 10

// recent replays a conversation up to a sequence and returns the newest read or write of
// each file, newest first.
func (c *conversation) recent(table *Table, upTo int, count func(testdata.Event) bool) []Access {
	var newest []Access
	for _, e := range c.events {
		if e.Kind != "tool_call" || e.Seq > upTo || !count(e) {
			continue
		}
		for _, a := range table.FromCall(c.call(e)) {
			if a.Kind == KindRead || a.Kind == KindWrite {
				newest = slices.DeleteFunc(newest, func(b Access) bool { return b.Path == a.Path })
				newest = append(newest, a)
			}
		}
	}
	slices.Reverse(newest)
	return newest
}

// agreement counts points whose ordered list of paths and kinds equals ours, compared in
// three ways. See TestRecentFilesOfRecordedConversations.
type agreement struct{ points, asLabelled, ourRule, withShell int }

func agree(all map[string]*conversation, points func(func(point) bool)) agreement {
	table := DefaultTable()
	var n agreement
	for p := range points {
		c := all[p.ConversationID]
		fileTool := func(e testdata.Event) bool { return !strings.EqualFold(e.ToolName, "Bash") }
		worked := func(e testdata.Event) bool {
			r, ok := c.results[e.ID]
			return !(ok && failed(r))
		}
		both := func(e testdata.Event) bool { return fileTool(e) && worked(e) }

		var labels, good []Access
		bad := map[string]bool{}
		for _, f := range p.RecentFiles {
			a := Access{Path: Normalise(c.cwd, f.Path), Kind: reportedKinds[f.Op]}
			labels = append(labels, a)
			if bad[a.Path] = !f.OK; f.OK {
				good = append(good, a)
			}
		}
		first := func(list []Access, n int) []Access { return list[:min(n, len(list))] }
		isBad := func(a Access) bool { return bad[a.Path] }

		n.points++
		if slices.Equal(first(c.recent(table, p.AtSeq, fileTool), recentFiles), labels) {
			n.asLabelled++
		}
		ours := slices.DeleteFunc(c.recent(table, p.AtSeq, both), isBad)
		room := len(good)
		if len(labels) < recentFiles {
			room = recentFiles // the label names all files, so any other is wrong
		}
		if slices.Equal(first(ours, room), good) {
			n.ourRule++
		}
		if slices.Equal(first(c.recent(table, p.AtSeq, func(testdata.Event) bool { return true }), recentFiles), labels) {
			n.withShell++
		}
	}
	return n
}

// The data shows what the labels mean: the ten newest distinct paths that the tools Read,
// Edit, MultiEdit, Write and NotebookEdit name in calls up to and including at_seq, each
// with its newest operation. The shell does not count. A failed call counts, marked "ok":
// false, even if its result comes after at_seq.
//
// So the fair comparison covers the file tools alone, in two ways:
//
//   - as labeled: failed calls count on our side too;
//   - by our rule, where a failed call accesses nothing: files whose newest access failed are removed
//     from both lists (an older access may be in ours, but the label doesn't say), and the rest must
//     agree.
//
// With the shell, the lists differ wherever a conversation reads with cat and the like.
// That figure is printed only to show how much the shell adds.
func TestRecentFilesOfRecordedConversations(t *testing.T) {
	all := conversations(testdata.Events(t, "claude_code"))
	path := filepath.Join(testdata.Dir(t), "qa", "recent_files_claude_code.jsonl.gz")
	n := agree(all, testdata.Lines[point](t, path))
	share := func(k int) float64 { return 100 * float64(k) / float64(max(n.points, 1)) }
	t.Logf("%d points: %.2f %% as labelled, %.2f %% by our rule, %.2f %% when shell reads count",
		n.points, share(n.asLabelled), share(n.ourRule), share(n.withShell))
	if share(n.asLabelled) < 99.5 || share(n.ourRule) < 99.5 {
		t.Errorf("want at least 99.5 %% of the points, both as labelled and by our rule")
	}
}
