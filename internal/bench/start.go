package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/window"
)

// StartOptions are the options of [RunStart].
type StartOptions struct {
	Program  Program
	Events   []string // transcripts to import, of one project
	MaxChars int      // budget of a context
}

// Start is the result of [RunStart].
type Start struct {
	Machine  Machine `json:"machine"`
	Store    Store   `json:"store"`
	MaxChars int     `json:"max_chars"`
	Project  string  `json:"project"`
	Sessions int     `json:"sessions"` // of the project
	Asked    int     `json:"asked"`    // sessions whose beginning was measured

	FilesAt   int       `json:"files_sessions"`      // sessions that went on to touch files
	Files     float64   `json:"files"`               // share of the first ten files that the context names
	Named     float64   `json:"files_named"`         // files that a context names, on average
	ByRecency float64   `json:"files_floor_recent"`  // share among the 20 files touched last
	BySimilar float64   `json:"files_floor_similar"` // share among 20 files of the most similar sessions
	Before    float64   `json:"files_ever_before"`   // share that any earlier session touched: no list can name more
	CmdsAt    int       `json:"commands_sessions"`   // sessions that went on to run commands of the project that were run twice before
	Commands  float64   `json:"commands"`            // share of these commands that the context names
	Context   Latencies `json:"context"`
}

// Limits of the measurement.
const (
	startAfter = 5  // sessions before the first that is measured
	firstFiles = 10 // files of a session that count
	floorFiles = 20 // files that a floor names
)

// RunStart imports the sessions of one project into the program in an empty directory. For each session but the first
// five, in the order of their first events, it reads the context of the project as of the moment before the session
// began, with the session's first user message as the query. It counts which of the first ten files that the session
// then reads or changes the context names (paths relative to the repository), and which of the commands that it then
// runs and that had been run at least twice before. The floors are the 20 files touched last, and 20 files of the
// sessions whose first messages are most similar. Projects whose folders have the same name count as one. Without events
// it returns [ErrNoEvents].
func RunStart(ctx context.Context, o StartOptions, say Say) (out Start, err error) {
	out.Machine, out.MaxChars = thisMachine(), o.MaxChars
	name, aliases, sessions, err := ofOneProject(ctx, o.Events)
	if err != nil {
		return out, err
	}
	out.Project, out.Sessions = name, len(sessions)
	out.Store, err = o.Program.loaded(ctx, Embeddings{Kind: "builtin"}, "off", func(server *program) error {
		return publishing(ctx, server, out.Project, aliases, func(log *eventlog.Log) error { return publishBegun(ctx, log, sessions) })
	}, func(server *program) error {
		reads := newAPI(server.http, tenant, 1)
		if _, err := reads.awaitApplied(ctx); err != nil {
			return err
		}
		return out.look(ctx, reads, sessions, o, say)
	})
	return out, err
}

// publishing makes other names aliases of a project, and runs do with the server's log.
func publishing(ctx context.Context, server *program, name string, aliases []string, do func(*eventlog.Log) error) error {
	reads := newAPI(server.http, tenant, 1)
	for _, alias := range aliases {
		if _, err := reads.send(ctx, http.MethodPut, "/v1/projects/"+url.PathEscape(alias)+"/alias", url.Values{}, map[string]string{"into": name}, http.StatusOK); err != nil {
			return err
		}
	}
	log, err := server.log(ctx)
	if err != nil {
		return err
	}
	defer log.Conn().Close()
	return do(log)
}

// publishBegun publishes the sessions one after the other.
func publishBegun(ctx context.Context, log *eventlog.Log, sessions []begun) error {
	for i := range sessions {
		acks, err := log.PublishAll(ctx, tenant, sessions[i].events)
		if err != nil {
			return err
		}
		sessions[i].first = acks[0].Seq
		sessions[i].events = nil
	}
	return nil
}

// begun is a session, as it was recorded.
type begun struct {
	id       string
	began    time.Time
	first    uint64 // sequence of its first event in the log
	query    string
	place    project.Place
	files    []string // distinct, in the order of their first touch, relative to the repository
	commands []string // normalised, with repetitions
	events   []events.Event
}

// look measures the sessions, which are in the order of their first events.
func (out *Start) look(ctx context.Context, reads *api, sessions []begun, o StartOptions, say Say) error {
	var took []time.Duration
	for i := startAfter; i < len(sessions); i++ {
		s := &sessions[i]
		wanted := s.files[:min(len(s.files), firstFiles)]
		commands := repeated(sessions[:i], s.commands)
		if s.query == "" || len(wanted)+len(commands) == 0 {
			continue
		}
		say("session %d of %d", i+1, len(sessions))
		out.Asked++
		began := time.Now()
		raw, err := reads.get(ctx, "/v1/projects/"+url.PathEscape(out.Project)+"/context", url.Values{
			"query": {s.query}, "max_chars": {strconv.Itoa(o.MaxChars)}, "as_of": {strconv.FormatUint(s.first-1, 10)}, "format": {"json"},
		})
		if err != nil {
			return err
		}
		took = append(took, time.Since(began))
		var c window.Context
		if err := json.Unmarshal(raw, &c); err != nil {
			return err
		}
		named, text := namedBy(&c)
		if len(wanted) > 0 {
			out.FilesAt++
			out.Files += share(wanted, func(f string) bool { return named[f] })
			out.Named += float64(len(named))
			out.ByRecency += share(wanted, among(lastTouched(sessions[:i])))
			out.BySimilar += share(wanted, among(mostSimilar(sessions[:i], s.query)))
			ever := map[string]bool{}
			for k := range sessions[:i] {
				for _, f := range sessions[k].files {
					ever[f] = true
				}
			}
			out.Before += share(wanted, func(f string) bool { return ever[f] })
		}
		if len(commands) > 0 {
			out.CmdsAt++
			out.Commands += share(commands, func(c string) bool { return text[c] })
		}
	}
	if out.FilesAt == 0 {
		return errors.Join(ErrNoEvents, errors.New("no session after the first five touches a file"))
	}
	for _, sum := range []*float64{&out.Files, &out.Named, &out.ByRecency, &out.BySimilar, &out.Before} {
		*sum /= float64(out.FilesAt)
	}
	out.Commands /= float64(max(1, out.CmdsAt))
	out.Context = latencies(took)
	return nil
}

func share(wanted []string, has func(string) bool) float64 {
	n := 0
	for _, w := range wanted {
		if has(w) {
			n++
		}
	}
	return float64(n) / float64(len(wanted))
}

func among(list []string) func(string) bool {
	return func(f string) bool { return slices.Contains(list, f) }
}

// readBegun reads the sessions of transcripts.
func readBegun(ctx context.Context, paths []string) ([]begun, error) {
	var list []begun
	at := map[string]int{}
	table := files.DefaultTable()
	err := eachEvent(ctx, paths, func(e events.Event) error {
		i, ok := at[e.Subject]
		if !ok {
			i = len(list)
			at[e.Subject] = i
			list = append(list, begun{id: e.Subject})
		}
		list[i].add(table, e)
		return nil
	})
	return list, err
}

func (s *begun) add(table *files.Table, e events.Event) {
	recorded, err := events.Record(e)
	if err != nil {
		return
	}
	s.events = append(s.events, e)
	if s.began.IsZero() {
		s.began = e.Time
	}
	switch p := recorded.Payload.(type) {
	case *events.ConversationStarted:
		if p.Cwd != "" || p.Project != "" {
			s.place = project.PlaceOf(p.Project, p.Repository, p.Cwd)
		}
	case *events.MessageCreated:
		if p.Role == "user" && p.Origin == "" && s.query == "" {
			s.query = strings.TrimSpace(p.Content)
		}
	case *events.ToolCalled:
		for _, name := range s.touched(table, p) {
			if !slices.Contains(s.files, name) {
				s.files = append(s.files, name)
			}
		}
		for _, ran := range table.Ran(s.call(p)) {
			if command := project.Command(ran, s.place); command != "" && !project.Anywhere(command) {
				s.commands = append(s.commands, command)
			}
		}
	}
}

func (s *begun) call(p *events.ToolCalled) files.Call {
	return files.Call{Tool: p.ToolName, Arguments: p.Arguments, Cwd: s.place.Folder}
}

// touched returns the files in the repository that a call reads or changes, relative to it.
func (s *begun) touched(table *files.Table, p *events.ToolCalled) (names []string) {
	for _, a := range table.FromCall(s.call(p)) {
		if name := s.place.Relative(a.Path); (a.Kind == files.KindRead || a.Kind == files.KindWrite) && !path.IsAbs(name) {
			names = append(names, name)
		}
	}
	return names
}

// ofOneProject reads the sessions of the largest project of transcripts. Recordings of one repository come from several machines, so
// projects whose folders have the same name as the largest belong to it: aliases names them.
func ofOneProject(ctx context.Context, paths []string) (name string, aliases []string, list []begun, err error) {
	all, err := readBegun(ctx, paths)
	if err != nil {
		return "", nil, nil, err
	}
	counts := map[string]int{}
	for _, s := range all {
		if s.place.Name != "" {
			counts[s.place.Name]++
		}
	}
	if len(counts) == 0 {
		return "", nil, nil, fmt.Errorf("%w: no session says in which folder it works", ErrNoEvents)
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	same := func(name string) bool { return path.Base(name) == path.Base(names[0]) }
	for _, name := range names[1:] {
		if same(name) {
			aliases = append(aliases, name)
		}
	}
	for _, s := range all {
		if s.place.Name != "" && same(s.place.Name) {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b begun) int { return a.began.Compare(b.began) })
	return names[0], aliases, list, nil
}

// repeated returns the distinct commands of a session that earlier sessions ran at least twice together.
func repeated(earlier []begun, commands []string) (list []string) {
	counts := map[string]int{}
	for i := range earlier {
		for _, c := range earlier[i].commands {
			counts[c]++
		}
	}
	for _, c := range commands {
		if counts[c] >= 2 && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// lastTouched returns the files touched last, the newest session's first.
func lastTouched(earlier []begun) (list []string) {
	for i := len(earlier) - 1; i >= 0; i-- {
		for _, f := range slices.Backward(earlier[i].files) {
			if !slices.Contains(list, f) {
				if list = append(list, f); len(list) == floorFiles {
					return list
				}
			}
		}
	}
	return list
}

// mostSimilar returns the files of the sessions whose first messages share most words with a query.
func mostSimilar(earlier []begun, query string) (list []string) {
	var index recall.Index
	for i := range earlier {
		if err := index.Add(uint64(i)+1, recall.NewBag(recall.Message{Role: "user", Session: strconv.Itoa(i), Content: earlier[i].query})); err != nil {
			continue
		}
	}
	for _, hit := range index.Search(recall.Query{Text: query}) {
		for _, f := range earlier[hit.Seq-1].files {
			if !slices.Contains(list, f) {
				if list = append(list, f); len(list) == floorFiles {
					return list
				}
			}
		}
	}
	return list
}

// namedBy returns the files that a context names, and the texts of its notes.
func namedBy(c *window.Context) (named, texts map[string]bool) {
	named, texts = map[string]bool{}, map[string]bool{}
	for _, s := range c.Sections {
		for _, it := range s.Items {
			for _, name := range it.Names {
				named[path.Join(it.Path, name)] = true
			}
			if it.Text != "" {
				texts[it.Text] = true
			}
		}
	}
	return named, texts
}
