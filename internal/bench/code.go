package bench

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/codeindex"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/scopes"
)

// CodeOptions are the options of [RunCode].
type CodeOptions struct {
	Program    Program
	Events     []string // transcripts to import, of coding agents
	Embeddings Embeddings
	MaxChars   int // budget of a context
	// OneRepository takes all working directories for checkouts of one repository.
	OneRepository bool
}

// repository names what a working directory shows the code of.
func (o *CodeOptions) repository(root string) string {
	if o.OneRepository {
		return ""
	}
	return root
}

// Code is the result of [RunCode].
type Code struct {
	Machine       Machine                `json:"machine"`
	Store         Store                  `json:"store"`
	MaxChars      int                    `json:"max_chars"`
	OneRepository bool                   `json:"one_repository"`
	Sessions      int                    `json:"sessions"`         // at which functions were needed
	Indexed       int                    `json:"sessions_indexed"` // sessions among them that had an index when they began
	Files         float64                `json:"indexed_files"`    // in the index of such a session, on average
	Scopes        float64                `json:"indexed_scopes"`
	All           CodeFigures            `json:"all"`
	Changed       CodeFigures            `json:"changed"` // of the functions that the next calls change
	Unseen        CodeFigures            `json:"unseen"`  // of the changed functions that the session had not shown before
	At            map[string]CodeFigures `json:"at"`      // by percent of the session; "0" is after the first user message
	Context       Latencies              `json:"context"`
	ContextBare   Latencies              `json:"context_without"`
}

// CodeFigures are shares of the functions that the next calls read or change, averaged over points in sessions.
type CodeFigures struct {
	Points    int      `json:"points"`
	Functions float64  `json:"functions"`    // needed at a point
	Known     float64  `json:"in_index"`     // that the index holds something of
	Seen      float64  `json:"shown_before"` // that the session had shown something of
	With      CodeHeld `json:"with_index"`
	Without   CodeHeld `json:"without_index"`
}

// CodeHeld is how much contexts hold.
type CodeHeld struct {
	Section float64 `json:"in_section"` // functions that Relevant Code Context shows something of
	Lines   float64 `json:"lines_in_section"`
	Context float64 `json:"in_context"` // functions that any section shows something of
}

// unindexed is the tenant whose sessions have no index.
const unindexed = tenant + "-unindexed"

// RunCode publishes sessions of coding agents twice, in the order in which they began: for one tenant with an index of
// the code of their projects, for the other without. When a session begins, the index holds what calls of earlier
// sessions had shown of files by then, and nothing later. RunCode then reads the context after the first user message
// and at 25, 50 and 75 % of each session, takes the functions that the next ten calls read or change, and measures how
// many of them Relevant Code Context holds. Without events it returns [ErrNoEvents].
func RunCode(ctx context.Context, o CodeOptions, say Say) (out Code, err error) {
	out.Machine, out.MaxChars, out.OneRepository, out.At = thisMachine(), o.MaxChars, o.OneRepository, map[string]CodeFigures{}
	list, err := readCodeSessions(ctx, o)
	if err != nil {
		return out, err
	}
	load := func(server *program) error { return out.publish(ctx, server, list, o, say) }
	out.Store, err = o.Program.loaded(ctx, o.Embeddings, "extractive", load, func(server *program) error { return out.look(ctx, server, list, o, say) })
	return out, err
}

// readCodeSessions reads the sessions, in the order in which they began.
func readCodeSessions(ctx context.Context, o CodeOptions) (list []*codeSession, err error) {
	by := map[string]*codeSession{}
	err = eachEvent(ctx, o.Events, func(e events.Event) error {
		s := by[e.Subject]
		if s == nil {
			s = &codeSession{id: e.Subject}
			list = append(list, s)
			by[e.Subject] = s
		}
		r, err := events.Record(e)
		if err != nil {
			return nil //nolint:nilerr // an import would only count it
		}
		if p, ok := r.Payload.(*events.ConversationStarted); ok && s.root == "" {
			if s.root = files.Normalise("", p.Cwd); s.root != "" {
				own := *p // each working directory has an index of its own
				own.Project = codeProject(s.root)
				changed, err := events.New(e.Subject, e.Source, e.ID, &own)
				if err != nil {
					return err
				}
				changed.Time, e = e.Time, changed
			}
		}
		s.events = append(s.events, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	roots := map[string]bool{}
	list = slices.DeleteFunc(list, func(s *codeSession) bool { return s.root == "" })
	for _, s := range list {
		roots[s.root] = true
		if err := s.read(); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, errors.Join(ErrNoEvents, errors.New("no session says in which directory it worked"))
	}
	for _, s := range list {
		for i := range s.facts {
			s.facts[i].place(roots)
		}
		s.facts = slices.DeleteFunc(s.facts, func(f codeFact) bool { return f.root == "" })
	}
	slices.SortStableFunc(list, func(a, b *codeSession) int { return a.began.Compare(b.began) })
	return list, nil
}

// codeProject names the project of a working directory.
func codeProject(root string) string { return "bench:" + root }

// place finds the working directory that a file is in, and its path from there.
func (f *codeFact) place(roots map[string]bool) {
	for i := len(f.path) - 1; i > 0; i-- {
		if f.path[i] == '/' && roots[f.path[:i]] {
			f.root, f.path = f.path[:i], f.path[i+1:]
			return
		}
	}
}

// publish publishes the sessions for both tenants, each after an index of what was known when it began.
func (out *Code) publish(ctx context.Context, server *program, list []*codeSession, o CodeOptions, say Say) error {
	log, err := server.log(ctx)
	if err != nil {
		return err
	}
	defer log.Conn().Close()
	facts := []codeFact{}
	for _, s := range list {
		facts = append(facts, s.facts...)
	}
	slices.SortStableFunc(facts, func(a, b codeFact) int { return a.at.Compare(b.at) })
	repositories, indexes := map[string]map[string]*codeFile{}, map[string]*codeIndex{}
	for i, s := range list {
		say("publishing session %d of %d", i+1, len(list))
		for len(facts) > 0 && facts[0].at.Before(s.began) {
			f := &facts[0]
			of := o.repository(f.root)
			if repositories[of] == nil {
				repositories[of] = map[string]*codeFile{}
			}
			repositories[of][f.path] = repositories[of][f.path].after(f)
			facts = facts[1:]
		}
		s.known = maps.Clone(repositories[o.repository(s.root)])
		if indexes[s.root] == nil {
			indexes[s.root] = &codeIndex{root: s.root, files: map[string]indexedFile{}}
		}
		x := indexes[s.root]
		if err := x.follow(ctx, log, s.known); err != nil {
			return err
		}
		s.indexed = len(x.files)
		for _, f := range x.files {
			s.scopes += f.scopes
		}
		for j, tenant := range []string{tenant, unindexed} {
			acks, err := log.PublishAll(ctx, tenant, s.events)
			if err != nil {
				return err
			}
			for _, ack := range acks {
				s.seqs[j] = append(s.seqs[j], ack.Seq)
			}
		}
	}
	_, err = newAPI(server.http, tenant, 1).awaitApplied(ctx)
	return err
}

// codeIndex is what was published of the files of a working directory.
type codeIndex struct {
	root    string
	files   map[string]indexedFile
	scanned int
}

type indexedFile struct {
	*codeFile
	scopes int
	event  string
}

// follow publishes the files that have changed, as `mneme index` does. Nothing is known about a file that was
// removed.
func (x *codeIndex) follow(ctx context.Context, log *eventlog.Log, known map[string]*codeFile) error {
	conversation := project.Conversation(events.CodePrefix, codeProject(x.root))
	var list []events.Event
	for _, path := range slices.Sorted(maps.Keys(known)) {
		f := known[path]
		if f == nil || x.files[path].codeFile == f {
			continue
		}
		text := []byte(f.text())
		cut, why := scopes.Cut(path, text)
		if why != "" || len(cut.Scopes) == 0 {
			continue
		}
		sum := sha256.Sum256(text)
		p := &events.CodeIndexed{Project: codeProject(x.root), Path: path, Hash: hex.EncodeToString(sum[:]), Language: cut.Language, Lines: cut.Lines, Left: cut.Left}
		for _, s := range cut.Scopes {
			if s.Text != "" {
				p.Scopes = append(p.Scopes, events.CodeScope{Name: s.Name, Kind: string(s.Kind), StartLine: s.Start, EndLine: s.End, Text: s.Text})
			}
		}
		e, err := events.New(conversation, codeindex.Source, events.DigestOf(path, p.Hash, x.files[path].event).String(), p)
		if err != nil {
			continue // a path that an index could not have
		}
		list = append(list, e)
		x.files[path] = indexedFile{f, len(p.Scopes), e.ID}
	}
	if len(list) == 0 {
		return nil
	}
	x.scanned++
	done, err := events.New(conversation, codeindex.Source, "scanned "+strconv.Itoa(x.scanned), &events.CodeScanned{Project: codeProject(x.root), Root: x.root, Done: true, Files: len(x.files)})
	if err != nil {
		return err
	}
	_, err = log.PublishAll(ctx, tenant, append(list, done))
	return err
}

// look reads the contexts of all sessions.
func (out *Code) look(ctx context.Context, server *program, list []*codeSession, o CodeOptions, say Say) error {
	with, without := newAPI(server.http, tenant, 1), newAPI(server.http, unindexed, 1)
	var took, bare []time.Duration
	sums := map[string]*CodeFigures{"all": {}, "changed": {}, "unseen": {}}
	for i, s := range list {
		say("session %d of %d", i+1, len(list))
		needed := false
		for _, percent := range []int{0, 25, 50, 75} {
			row := len(s.events)*percent/100 - 1
			if percent == 0 {
				row = s.asked
			}
			if row < 0 || percent > 0 && row <= s.asked {
				continue
			}
			p := s.needed(row)
			if len(p.functions) == 0 {
				continue
			}
			needed = true
			var shown [2]codeShown
			for j, reads := range []*api{with, without} {
				began := time.Now()
				raw, err := reads.get(ctx, conversationPath(s.id, "/context"), url.Values{
					"max_chars": {strconv.Itoa(o.MaxChars)}, "as_of": {strconv.FormatUint(s.seqs[j][row], 10)}, "format": {"markdown"},
				})
				if err != nil {
					return err
				}
				if shown[j] = newCodeShown(string(raw)); j == 0 {
					took = append(took, time.Since(began))
				} else {
					bare = append(bare, time.Since(began))
				}
			}
			at := strconv.Itoa(percent)
			if sums[at] == nil {
				sums[at] = &CodeFigures{}
			}
			all := func(codeFunction) bool { return true }
			sums["all"].add(p, shown, all)
			sums[at].add(p, shown, all)
			sums["changed"].add(p, shown, func(f codeFunction) bool { return f.changed })
			sums["unseen"].add(p, shown, func(f codeFunction) bool { return !f.seen })
		}
		if !needed {
			continue
		}
		if out.Sessions++; s.indexed > 0 {
			out.Indexed++
			out.Files += float64(s.indexed)
			out.Scopes += float64(s.scopes)
		}
	}
	if sums["all"].Points == 0 {
		return errors.Join(ErrNoEvents, errors.New("no session reads or changes a function"))
	}
	out.Files, out.Scopes = out.Files/float64(max(1, out.Indexed)), out.Scopes/float64(max(1, out.Indexed))
	for at, f := range sums {
		switch at {
		case "all":
			out.All = f.mean()
		case "changed":
			out.Changed = f.mean()
		case "unseen":
			out.Unseen = f.mean()
		default:
			out.At[at] = f.mean()
		}
	}
	out.Context, out.ContextBare = latencies(took), latencies(bare)
	return nil
}

// codeNeed is what the agent needs after a point of a session.
type codeNeed struct{ functions []codeFunction }

// codeFunction is a function that calls read or change.
type codeFunction struct {
	name    string
	file    string   // its whole path
	lines   []string // its distinctive lines; if the function is only read, those that were shown
	changed bool
	known   bool // the index has something of it
	seen    bool // the session had shown something of it
}

// needed returns the functions that the next calls, those after a row, read or change.
func (s *codeSession) needed(row int) (p codeNeed) {
	now, shown := maps.Clone(s.known), map[string]*strings.Builder{}
	if now == nil {
		now = map[string]*codeFile{}
	}
	last := len(s.events)
	if next, _ := slices.BinarySearch(s.calls, row+1); next+nextCalls < len(s.calls) {
		last = s.calls[next+nextCalls]
	}
	at := map[string]int{}
	for i := range s.facts {
		f := &s.facts[i]
		if f.root != s.root {
			continue // a file of another checkout, which this index does not cover
		}
		path := f.root + "/" + f.path
		before := now[f.path]
		now[f.path] = before.after(f)
		if f.done <= row {
			if shown[path] == nil {
				shown[path] = &strings.Builder{}
			}
			shown[path].WriteString(f.text + "\n" + strings.Join(f.old, "\n") + "\n" + strings.Join(f.change, "\n") + "\n")
			continue
		}
		if f.row <= row || f.row >= last {
			continue
		}
		for _, fn := range before.touched(f) {
			key := path + "\x00" + fn.name
			if k, ok := at[key]; ok {
				old := &p.functions[k]
				old.changed = old.changed || fn.changed
				continue
			}
			fn.file = path
			fn.known = s.known[f.path] != nil && holds(s.known[f.path].text(), fn.lines) > 0
			fn.seen = shown[path] != nil && holds(shown[path].String(), fn.lines) > 0
			at[key] = len(p.functions)
			p.functions = append(p.functions, fn)
		}
	}
	return p
}

// touched returns the functions of a file that a call reads or changes. Functions that a call adds did not exist
// before.
func (f *codeFile) touched(fact *codeFact) (list []codeFunction) {
	type span struct{ from, to int }
	var spans []span
	after := f
	switch {
	case len(fact.old) > 0:
		for _, old := range fact.old {
			if from, to, ok := f.lookup(old); ok {
				spans = append(spans, span{from, to})
			}
		}
	case fact.kind == files.KindRead && fact.whole:
		after = newCodeFile(fact.text)
		spans = append(spans, span{0, len(after.lines)})
	case fact.kind == files.KindRead:
		lines := strings.Split(fact.text, "\n")
		from := 0
		after, from = f.with(fact.first-1, lines)
		spans = append(spans, span{from, from + len(lines)})
	}
	if len(spans) == 0 {
		return nil
	}
	cut, _ := scopes.Cut(fact.path, []byte(after.text()))
	times := map[string]int{}
	for _, line := range after.lines {
		times[strings.TrimSpace(line)]++
	}
	for _, s := range cut.Scopes {
		if s.Kind != scopes.Function {
			continue
		}
		for _, span := range spans {
			from, to := max(span.from, s.Start-1), min(span.to, s.End, len(after.lines))
			if from >= to {
				continue
			}
			fn := codeFunction{name: s.Name, changed: len(fact.old) > 0}
			if fn.changed {
				from, to = s.Start-1, min(s.End, len(after.lines))
			}
			for _, line := range after.lines[from:to] {
				if line = strings.TrimSpace(line); len(line) >= minLine && times[line] == 1 {
					fn.lines = append(fn.lines, line)
				}
			}
			if len(fn.lines) > 0 {
				list = append(list, fn)
			}
			break
		}
	}
	return list
}

// holds counts the lines that a text contains.
func holds(text string, lines []string) (n int) {
	for _, line := range lines {
		if strings.Contains(text, line) {
			n++
		}
	}
	return n
}

// codeShown is what a context shows.
type codeShown struct {
	whole   string
	section map[string]string // Relevant Code Context, by file
}

func newCodeShown(markdown string) codeShown {
	out := codeShown{markdown, map[string]string{}}
	_, section, _ := strings.Cut("\n"+markdown, "\n## Relevant Code Context")
	section, _, _ = strings.Cut(section, "\n## ")
	for part := range strings.SplitSeq(section, "\n### ") {
		path, text, _ := strings.Cut(part, "\n")
		out.section[strings.TrimSpace(path)] += text
	}
	return out
}

// add counts how much of a need both contexts hold.
func (f *CodeFigures) add(p codeNeed, shown [2]codeShown, counts func(codeFunction) bool) {
	var one CodeFigures
	for _, fn := range p.functions {
		if !counts(fn) {
			continue
		}
		one.Functions++
		if fn.known {
			one.Known++
		}
		if fn.seen {
			one.Seen++
		}
		for i, held := range []*CodeHeld{&one.With, &one.Without} {
			if n := holds(shown[i].section[fn.file], fn.lines); n > 0 {
				held.Section++
				held.Lines += float64(n) / float64(len(fn.lines))
			}
			if holds(shown[i].whole, fn.lines) > 0 {
				held.Context++
			}
		}
	}
	if n := one.Functions; n > 0 {
		f.Points++
		f.Functions += n
		f.sum(&one, 1/n)
	}
}

// sum adds shares.
func (f *CodeFigures) sum(one *CodeFigures, weight float64) {
	f.Known += weight * one.Known
	f.Seen += weight * one.Seen
	for _, h := range [][2]*CodeHeld{{&f.With, &one.With}, {&f.Without, &one.Without}} {
		h[0].Section += weight * h[1].Section
		h[0].Lines += weight * h[1].Lines
		h[0].Context += weight * h[1].Context
	}
}

// mean divides sums by the number of points.
func (f *CodeFigures) mean() CodeFigures {
	n := 1 / float64(cmp.Or(f.Points, 1))
	out := CodeFigures{Points: f.Points, Functions: n * f.Functions}
	out.sum(f, n)
	return out
}
