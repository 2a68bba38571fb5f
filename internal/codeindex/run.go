package codeindex

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	conc "github.com/sourcegraph/conc/iter"
	"golang.org/x/sync/errgroup"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/redact"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/scopes"
)

// Source is the source of the events.
const Source = "mneme/index"

// version names how files are cut. Raise it when the scopes of the same file change, so that files are cut again.
const version = "3"

// How much is read and published at once, and how often the state is written.
const (
	chunkFiles = 256
	chunkBytes = 8 << 20
	batchBytes = 4 << 20
	saveEvery  = 10 * time.Second
)

// Options configure a run.
type Options struct {
	Root    string // of the project; an absolute path
	Below   string // only files in this folder of it, with slashes; "" means all
	Project string
	Tenant  string
	Log     importer.Log
	Redact  *redact.Rules // nil redacts nothing
	// State is the file that remembers what was published.
	State string
	// Erased says whether the conversation of the index was deleted; nil does not ask.
	Erased func(ctx context.Context, conversation string) (bool, error)
	// Begin is called before an index begins anew because the one before it was erased: with the name that it gets, and the
	// project whose name that becomes. nil returns [ErrErased] instead.
	Begin func(ctx context.Context, name, project string) error
	// Known says what the read model holds, if there is no state: nil if nothing.
	Known    func(ctx context.Context, project string) (*State, error)
	MaxFiles int // 0 means DefaultMaxFiles
	// Ignores is a file of further paths to leave out, as in a .gitignore file, which has precedence: see [UserIgnores].
	// It may be absent.
	Ignores string
	// AnyCase says that patterns in .gitignore files match names in any case: see [IgnoresCase].
	AnyCase bool
	// ListSkipped fills [Report].SkippedFiles.
	ListSkipped bool
	// DryRun publishes nothing and remembers nothing.
	DryRun bool
	// Progress is called with the number of files handled and of all files.
	Progress func(done, all int)
}

// Report counts what a run did: Files = Unchanged + Indexed + Empty + Changing, without those that were skipped.
type Report struct {
	Project   string         `json:"project"`
	Root      string         `json:"root"`
	Files     int            `json:"files"`     // that could be indexed by their names
	Unchanged int            `json:"unchanged"` // since the last run, without those that are left out
	Indexed   int            `json:"indexed"`   // published
	Removed   int            `json:"removed"`   // published as removed
	Scopes    int            `json:"scopes"`    // of the files that were published
	LeftOut   int            `json:"left_out"`  // scopes over the limits of a file
	Redacted  int            `json:"redacted"`  // scopes in which secrets were replaced
	Bytes     int64          `json:"bytes"`     // read
	Skipped   map[string]int `json:"skipped"`   // files that were left out, by reason
	// SkippedFiles are these files, sorted by path, if [Options].ListSkipped.
	SkippedFiles []SkippedFile `json:"skipped_files,omitempty"`
	Changing     int           `json:"changing"` // files that changed while they were read; the next run reads them
	Seconds      float64       `json:"seconds"`
	LastSeq      uint64        `json:"last_seq"` // highest published sequence; 0 if nothing was published
}

// SkippedFile is a file that was left out.
type SkippedFile struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// ErrUnread means that files could not be read. The others were indexed.
var ErrUnread = errors.New("not everything could be read")

// ErrMissing means that there is no such folder, and that the index holds nothing of it.
var ErrMissing = errors.New("no such folder, and the index holds nothing of it")

// ErrErased means that the index was erased or deleted. What was erased takes no code any more, because replicas and
// backups may still hold its events; the project's code can begin again under the next name, see [project.Again].
var ErrErased = errors.New("its index was erased and accepts no more code; mneme index --again begins a new one")

// Run indexes a folder. On any error the report says what was published so far; another run continues from there. It
// returns [ErrTooMany], [ErrErased], [ErrMissing], [ErrUnread], and the errors of the log.
func Run(ctx context.Context, o Options) (Report, error) {
	began := time.Now()
	r := &run{Options: o, began: began.UnixNano(), report: Report{Project: o.Project, Root: o.Root, Skipped: map[string]int{}}}
	if o.Redact != nil {
		r.whole = o.Redact.ForFiles()
	}
	err := r.run(ctx)
	r.report.Seconds = time.Since(began).Seconds()
	return r.report, err
}

type run struct {
	Options
	whole  *redact.Rules // Redact, for whole files
	state  *State
	report Report
	began  int64
	saved  time.Time
	unread []error
	fresh  bool // the state changed since it was saved
	unsure bool // an attempt to publish failed
}

// job is a file to read, and what is known about it.
type job struct {
	found
	old *File
}

func (r *run) run(ctx context.Context) error {
	if err := r.name(ctx); err != nil {
		return err
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	w := newWalker(r.Root, r.Ignores, r.MaxFiles, r.skip)
	w.anyCase = r.AnyCase
	if err := w.walk(ctx, r.Below); err != nil {
		return err
	}
	r.report.Files = len(w.files)
	for _, u := range w.unread {
		r.unread = append(r.unread, u.err)
	}
	list, there := r.changed(w.files)
	gone := r.gone(there, w.unread)
	if w.missing && !slices.ContainsFunc(gone, func(path string) bool { return r.state.Files[path].shown() }) {
		return fmt.Errorf("%s: %w", filepath.Join(r.Root, filepath.FromSlash(r.Below)), ErrMissing)
	}
	if len(list)+len(gone) > announced {
		if err := r.scanned(ctx, false); err != nil {
			return err
		}
	}
	err := r.index(ctx, list)
	if err == nil {
		err = r.remove(ctx, gone)
	}
	if err == nil && (r.report.Indexed+r.report.Removed > 0 || r.state.Open || r.state.Scan == "") {
		err = r.scanned(ctx, true)
	}
	if e := r.save(); err == nil {
		err = e
	}
	if err == nil && r.report.LastSeq > 0 {
		err = r.kept(ctx)
	}
	slices.SortFunc(r.report.SkippedFiles, func(a, b SkippedFile) int { return strings.Compare(a.Path, b.Path) })
	if err == nil && len(r.unread) > 0 {
		err = errors.Join(append([]error{ErrUnread}, r.unread...)...)
	}
	return err
}

// name finds the name under which the project's code is indexed now: the first one whose index was not erased.
func (r *run) name(ctx context.Context) error {
	if r.Erased == nil {
		return nil
	}
	for first, n := r.Project, 1; ; n++ {
		r.Project = project.Again(first, n)
		r.report.Project = r.Project
		if erased, err := r.Erased(ctx, r.conversation()); err != nil {
			return err
		} else if erased {
			continue
		}
		if n == 1 {
			return nil
		}
		if begun, err := r.begun(ctx); err != nil || begun {
			return err
		}
		if r.Begin == nil {
			return fmt.Errorf("%s: %w", first, ErrErased)
		}
		return r.Begin(ctx, r.Project, first)
	}
}

// kept returns [ErrErased] if the index was erased or deleted while the run published to it: then nothing of that counts.
func (r *run) kept(ctx context.Context) error {
	if r.Erased == nil {
		return nil
	}
	if erased, err := r.Erased(ctx, r.conversation()); err != nil || !erased {
		return err
	}
	return fmt.Errorf("%s: %w", r.Project, ErrErased)
}

// begun reports whether there is an index under the name.
func (r *run) begun(ctx context.Context) (bool, error) {
	if s, err := LoadState(r.State); err != nil || s != nil && s.Project == r.Project {
		return err == nil, err
	}
	if r.Known == nil {
		return false, nil
	}
	known, err := r.Known(ctx, r.Project)
	return known != nil, err
}

// announced is from how many changed files on a run publishes that it has begun.
const announced = 100

// open reads the state.
func (r *run) open(ctx context.Context) (err error) {
	rules := version
	if r.Redact != nil {
		rules += "/" + r.Redact.Version()
	}
	r.saved = time.Now()
	if r.state, err = LoadState(r.State); err != nil {
		return err
	}
	if r.state == nil || r.state.Project != r.Project {
		r.state = &State{Project: r.Project, Rules: rules, Files: map[string]*File{}}
		if r.Known != nil {
			if known, err := r.Known(ctx, r.Project); err != nil {
				return err
			} else if known != nil {
				r.state.Files, r.state.Scan, r.state.Open = known.Files, known.Scan, known.Open
			}
		}
		r.fresh = true
		if err := r.save(); err != nil { // intents refer to a saved state
			return err
		}
	}
	if r.state.Rules != rules { // everything is cut again
		for _, f := range r.state.Files {
			f.Read, f.Hash = 0, ""
		}
		r.state.Rules = rules
	}
	return nil
}

// changed returns the files to read.
func (r *run) changed(all []found) (list []job, there map[string]bool) {
	there = make(map[string]bool, len(all))
	for _, f := range all {
		there[f.path] = true
		old := r.state.Files[f.path]
		if old != nil && old.same(f) {
			r.unchanged(f.path, old.Why)
			continue
		}
		list = append(list, job{f, old})
	}
	return list, there
}

// unchanged counts a file that is as it was; why says why it is left out, "" if it is in the index.
func (r *run) unchanged(path, why string) {
	if why == "" {
		r.report.Unchanged++
	} else {
		r.skip(path, why)
	}
}

// skip counts a file that is left out.
func (r *run) skip(path, why string) {
	r.report.Skipped[why]++
	if r.ListSkipped {
		r.report.SkippedFiles = append(r.report.SkippedFiles, SkippedFile{strings.ToValidUTF8(path, "\uFFFD"), why})
	}
}

// gone returns the paths that are in the index and no longer in the folder, sorted. While a folder can't be read, nothing
// in it is gone.
func (r *run) gone(there map[string]bool, unseen []unread) (list []string) {
	for path := range r.state.Files {
		if !there[path] && (r.Below == "" || project.Below(path, r.Below)) && !slices.ContainsFunc(unseen, func(u unread) bool { return u.hides(path) }) {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}

// index reads and publishes files. While a chunk is published, the next one is read.
func (r *run) index(ctx context.Context, list []job) error {
	chunks := make(chan []outcome, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(chunks)
		for chunk := range parts(list) {
			outcomes := conc.Map(chunk, func(f *job) outcome { return r.read(*f) })
			select {
			case chunks <- outcomes:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	group.Go(func() error {
		done := r.report.Files - len(list)
		for chunk := range chunks {
			if err := r.publishFiles(ctx, chunk); err != nil {
				return err
			}
			if done += len(chunk); r.Progress != nil {
				r.Progress(done, r.report.Files)
			}
			if time.Since(r.saved) > saveEvery {
				if err := r.save(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return group.Wait()
}

// parts divides files into chunks of at most chunkFiles of which at most chunkBytes are read.
func parts(list []job) iter.Seq[[]job] {
	return func(yield func([]job) bool) {
		for len(list) > 0 {
			n, size := 0, int64(0)
			for n < min(len(list), chunkFiles) {
				if size += min(list[n].size, scopes.MaxFileBytes+1); size > chunkBytes {
					break
				}
				n++
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}

// publishFiles publishes what has changed, and remembers it.
func (r *run) publishFiles(ctx context.Context, list []outcome) error {
	var made []events.Event
	var remember []func()
	var paths []string
	for i := range list {
		o := &list[i]
		r.report.Bytes += o.bytes
		switch {
		case errors.Is(o.err, os.ErrNotExist): // gone meanwhile
			continue
		case o.err != nil:
			r.unread = append(r.unread, o.err)
			continue
		case o.why == changing:
			r.report.Changing++
			continue
		}
		old := o.old
		now := &File{Size: o.size, Time: o.time, Read: r.began, Hash: o.hash, Why: o.why}
		if old != nil {
			now.ID, now.Gone = old.ID, old.Gone
		}
		keep := func() { r.state.Files[o.path] = now }
		if old != nil && old.Hash == o.hash {
			r.unchanged(o.path, o.why)
			r.remembered(keep)
			continue
		}
		if o.why != "" {
			r.skip(o.path, o.why)
		}
		switch {
		case o.why != "" && !old.shown():
			r.remembered(keep)
		case o.why != "": // it no longer holds anything to find
			e, err := r.event(o.path, &events.CodeIndexed{Project: r.Project, Path: o.path, Hash: o.hash, Removed: true}, r.before(old))
			if err != nil {
				return err
			}
			now.ID, now.Gone = e.ID, true
			made, paths, remember = append(made, e), append(paths, o.path), append(remember, func() { keep(); r.report.Removed++ })
		default:
			before := now.ID
			if old != nil && old.Again {
				before = r.before(old)
			}
			e, err := r.event(o.path, r.payload(o), before)
			if err != nil {
				return err
			}
			now.ID, now.Gone = e.ID, false
			made, paths = append(made, e), append(paths, o.path)
			remember = append(remember, func() {
				keep()
				r.report.Indexed++
				r.report.Scopes += len(o.cut.Scopes)
				r.report.LeftOut += o.cut.Left
				r.report.Redacted += o.redacted
			})
		}
	}
	return r.publish(ctx, made, paths, remember)
}

func (r *run) remembered(keep func()) { keep(); r.fresh = true }

// payload says what a file holds.
func (r *run) payload(o *outcome) *events.CodeIndexed {
	p := &events.CodeIndexed{Project: r.Project, Path: o.path, Hash: o.hash, Language: o.cut.Language, Lines: o.cut.Lines, Left: o.cut.Left}
	for _, s := range o.cut.Scopes {
		text := s.Text
		for len(text) > events.MaxScopeTextBytes { // what replaces a secret can be longer
			text = strings.ToValidUTF8(text[:events.MaxScopeTextBytes], "")
		}
		if text != "" {
			p.Scopes = append(p.Scopes, events.CodeScope{Name: strings.ToValidUTF8(s.Name[:min(len(s.Name), events.MaxScopeNameBytes)], ""), Kind: string(s.Kind), StartLine: s.Start, EndLine: s.End, Text: text})
		}
	}
	return p
}

// conversation is the one that holds the index.
func (r *run) conversation() string { return project.Conversation(events.CodePrefix, r.Project) }

func (r *run) event(path string, p events.Payload, before string) (events.Event, error) {
	hash := "scanned"
	if file, ok := p.(*events.CodeIndexed); ok {
		hash = fmt.Sprint(file.Removed, file.Hash, r.state.Rules)
	}
	return events.New(r.conversation(), Source, events.DigestOf("code", path, hash, before).String(), p)
}

// remove publishes which files are gone.
func (r *run) remove(ctx context.Context, list []string) error {
	for part := range slices.Chunk(list, chunkFiles) {
		var made []events.Event
		var remember []func()
		var paths []string
		for _, path := range part {
			old := r.state.Files[path]
			if !old.shown() {
				if old.ID == "" {
					delete(r.state.Files, path)
				} else {
					old.Read, old.Hash, old.Why = 0, "", ""
				}
				r.fresh = true
				continue
			}
			e, err := r.event(path, &events.CodeIndexed{Project: r.Project, Path: path, Hash: hashOr(old.Hash), Removed: true}, r.before(old))
			if err != nil {
				return err
			}
			made, paths = append(made, e), append(paths, path)
			remember = append(remember, func() { // its id stays, for the case that it comes back
				*old = File{ID: e.ID, Gone: true}
				r.report.Removed++
			})
		}
		if err := r.publish(ctx, made, paths, remember); err != nil {
			return err
		}
	}
	return nil
}

// shown reports whether the index may hold something of a file.
func (f *File) shown() bool { return f != nil && (f.Unsure || f.ID != "" && !f.Gone) }

// before names the event before the one that removes a file. If its id is not known, it returns a value that no event
// has.
func (r *run) before(f *File) string {
	if f.ID == "" || f.Again {
		return fmt.Sprint("unknown at ", r.began)
	}
	return f.ID
}

// hashOr is the hash of a file, or of nothing if it is not known.
func hashOr(hash string) string {
	if hash != "" {
		return hash
	}
	sum := sha256.Sum256(nil)
	return hex.EncodeToString(sum[:])
}

// scanned publishes that a run began or ended.
func (r *run) scanned(ctx context.Context, done bool) error {
	p := &events.CodeScanned{Project: r.Project, Root: r.Root, Done: done}
	if done {
		for _, f := range r.state.Files {
			if f.ID != "" && !f.Gone {
				p.Files++
			}
		}
	}
	e, err := r.event(fmt.Sprint(done), p, r.digest())
	if err != nil {
		return err
	}
	return r.publish(ctx, []events.Event{e}, []string{scan}, []func(){func() { r.state.Scan, r.state.Open = e.ID, !done }})
}

// digest identifies what the index holds: the last events about it.
func (r *run) digest() string {
	ids := make([]string, 0, len(r.state.Files))
	for _, f := range r.state.Files {
		if f.ID != "" {
			ids = append(ids, f.ID)
		}
	}
	slices.Sort(ids)
	return events.DigestOf(append(ids, r.Root, r.state.Scan)...).String()
}

// publish publishes events, and calls the function of each that remembers it.
func (r *run) publish(ctx context.Context, list []events.Event, paths []string, remember []func()) error {
	if len(list) == 0 {
		return nil
	}
	if r.DryRun {
		for _, keep := range remember {
			keep()
		}
		return nil
	}
	if err := intend(r.State, paths); err != nil {
		return err
	}
	for len(list) > 0 {
		n, size := 0, 0
		for n < len(list) && (n == 0 || size+len(list[n].Data) <= batchBytes) {
			size += len(list[n].Data)
			n++
		}
		acks, err := r.Log.PublishAll(ctx, r.Tenant, list[:n])
		for i, ack := range acks {
			remember[i]()
			r.fresh = true
			r.report.LastSeq = max(r.report.LastSeq, ack.Seq)
		}
		if err != nil {
			r.unsure = true
			return err
		}
		list, remember = list[n:], remember[n:]
	}
	return nil
}

func (r *run) save() error {
	if r.DryRun || !r.fresh {
		return nil
	}
	r.saved, r.fresh = time.Now(), false
	return r.state.save(r.State, r.unsure)
}
