// Package importer imports recorded transcripts into the log. It is idempotent: it never
// publishes an event that the log already has, whenever that was published.
package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/intake"
	"mneme.dev/mneme/internal/redact"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/eventlog"
)

// Events are published in batches of this many events or bytes.
const (
	batchEvents = 1000
	batchBytes  = 8 << 20
)

// StillWritten is how long after its last change a recording counts as still being
// written by its agent, unless Options.StillWritten says otherwise. It applies to
// uncompressed files in an imported folder; a file that is named explicitly, or
// compressed, is imported as it is.
const StillWritten = 2 * time.Minute

// TurnWritten is how long after the end of its turn an agent may take to write the last lines. Hooks of Claude Code fire
// before these are on disk, by about 100 ms.
const TurnWritten = 2 * time.Second

// ErrUnread means that files could not be read, or not completely. The other files were
// imported.
var ErrUnread = errors.New("not everything could be read")

// ErrRefused means that an import stopped because too many lines are invalid, see
// Options.MaxRefused. The events before them were imported.
var ErrRefused = errors.New("lines are not valid events, so the rest was not read: look at the first ones, this is probably not a recording")

// Known is what the read model holds under an event's identity.
type Known struct {
	Seq     uint64 // 0 if nothing; if the conversation is deleted, the sequence of its deletion
	Content string // fingerprint, see events.Event.Content; "" if the conversation is deleted
}

// Log is where an import publishes: an [eventlog.Log], or a server's API. Its errors are those of
// an eventlog.Log, and [events.ErrInvalid] for an event that a server of another version refuses.
type Log interface {
	Publish(ctx context.Context, tenant string, e events.Event) (eventlog.Ack, error)
	PublishAll(ctx context.Context, tenant string, list []events.Event) ([]eventlog.Ack, error)
}

// Options configure an import.
type Options struct {
	Tenant string
	Format string // a format of package transcript, or auto
	// Lookup returns what the read model knows about each event, in the same order. If it
	// is nil, only the server's duplicate window and the read models drop duplicates.
	Lookup func(context.Context, []events.Event) ([]Known, error)
	// Rejected is called for each line that could not be imported.
	Rejected func(file string, err *transcript.LineError)
	// Deleted is called once for each deleted conversation whose events were left out, with the line of the first one.
	Deleted func(file string, first *transcript.LineError)
	// Admit is called before new events are published, with the size of their data. If it fails, the import ends with
	// its error; otherwise settle is called once they are published, or can't be. Nil admits all.
	Admit func(count, size int) (settle func(), err error)
	// Redact are the rules of what is redacted before it is published. Nil redacts nothing.
	Redact *redact.Rules
	// RedactAll redacts recordings of every format; otherwise only those in formats that agents themselves write.
	RedactAll bool
	// Cleaner removes what is not to be published. It remembers calls of mneme's own tools from one import to the next; nil
	// makes one for each recording. Its rules are set by the import.
	Cleaner *intake.Cleaner
	// FirstCounts makes an event a duplicate if the log has other content under its identity, for recordings that tell
	// the same in several ways.
	FirstCounts bool
	// MaxRefused stops the import with [ErrRefused] once more lines than this are invalid;
	// 0 means never. Lines that contradict events of the log don't count.
	MaxRefused int
	// StillWritten replaces [StillWritten]; 0 means that.
	StillWritten time.Duration
	// TurnEnded says that the agent's turn has ended. An answer at the end of a recording that has not changed for
	// [TurnWritten] then counts as complete.
	TurnEnded bool
	// Since is the time from which on databases are read, see [transcript.ReadDatabase]; zero means from their start.
	Since time.Time
	// Progress is called with the number of compressed bytes of a file read since the last
	// call, and the number of events handled.
	Progress func(bytes int64, items int)
}

// Report counts what an import did: Read = Published + Duplicate + Rejected + Deleted + HeldBack.
type Report struct {
	Read          int    `json:"read"`
	Published     int    `json:"published"`
	Duplicate     int    `json:"duplicate"`
	Rejected      int    `json:"rejected"`
	Deleted       int    `json:"deleted"`   // events of conversations that were deleted: they stay so
	HeldBack      int    `json:"held_back"` // events of messages that may be unfinished
	Conversations int    `json:"conversations"`
	LastSeq       uint64 `json:"last_seq"` // highest published sequence
	Redacted      int    `json:"redacted"` // events in which secrets were replaced, known ones included
	// Skipped counts the lines left out because their type is unknown, by "<format> <agent's version>: <type>".
	// Beyond 100 different ones the rest counts as "others".
	Skipped map[string]int `json:"skipped,omitempty"`
	// Until is the time up to which the last database was read, for Options.Since.
	Until time.Time `json:"-"`
}

// Import publishes the events of files in their order. It skips files that can't be read;
// the error is then [ErrUnread] with the reasons, one per line.
//
// On any other error the report says what is in the log so far; importing the same files
// again continues from there.
func Import(ctx context.Context, log Log, files []transcript.File, o Options) (Report, error) {
	im := newRun(log, o)
	unread := []error{ErrUnread}
	for _, f := range files {
		bad, err := im.file(ctx, f)
		if err != nil {
			return im.report(), fmt.Errorf("%s: %w", f.Path, err)
		}
		if bad != nil {
			unread = append(unread, bad)
		}
	}
	if len(unread) > 1 {
		return im.report(), errors.Join(unread...)
	}
	return im.report(), nil
}

// ImportFrom is [Import] of one recording from a reader; name is used in messages. If the
// reader fails, everything read before is imported.
func ImportFrom(ctx context.Context, log Log, name string, in io.Reader, o Options) (Report, error) {
	im := newRun(log, o)
	unread, err := im.recording(ctx, name, in, finished)
	return im.report(), errors.Join(err, unread)
}

// ImportItems is [Import] of items that were read already; name is used in messages.
func ImportItems(ctx context.Context, log Log, name string, items []transcript.Item, o Options) (Report, error) {
	im := newRun(log, o)
	unread, err := im.items(ctx, name, &countingReader{}, finished, func(yield func(transcript.Item) error, _ ...transcript.Option) error {
		for _, item := range items {
			if err := yield(item); err != nil {
				return err
			}
		}
		return nil
	})
	return im.report(), errors.Join(err, unread)
}

// finished is for recordings that no agent is writing.
func finished(transcript.Item) bool { return false }

func newRun(log Log, o Options) *run {
	return &run{log: log, Options: o, conversations: map[string]bool{}, deleted: map[string]bool{}}
}

type run struct {
	log Log
	Options
	counts        Report
	conversations map[string]bool
	deleted       map[string]bool // conversations already told to Deleted
	moves         moves
	cleaner       *intake.Cleaner
	name          string
	batch         []transcript.Item
	bytes         int
	sent          *sent // the batch being published, nil if there is none
	refused       int   // invalid lines
}

// sent is a batch that is published while the next one is read. Its fields are set once done is
// closed.
type sent struct {
	items []transcript.Item
	known []Known           // of all items; nil without a lookup
	fresh []transcript.Item // that the read model does not know
	acks  []eventlog.Ack    // of the first fresh items
	err   error
	done  chan struct{}
}

func (r *run) report() Report {
	r.counts.Conversations = len(r.conversations)
	return r.counts
}

// file imports one file. unread names the file and says why it could not be read
// completely; err ends the import.
func (r *run) file(ctx context.Context, f transcript.File) (unread, err error) {
	in, err := f.Open()
	if err != nil {
		return err, nil
	}
	defer func() { _ = in.Close() }()
	opened, err := in.Stat()
	if err != nil {
		return err, nil
	}
	if transcript.IsDatabase(in) {
		return r.database(ctx, f, opened.Size())
	}
	// Call this after the end was read: a copying program may write the last bytes, and then set an old time, after
	// they were missed here. So the file must have been old when it was opened, and unchanged since.
	rested := sync.OnceValue(func() time.Duration {
		now, err := in.Stat()
		if err == nil && (now.Size() != opened.Size() || !now.ModTime().Equal(opened.ModTime())) {
			return -1
		}
		return time.Since(opened.ModTime())
	})
	return r.recording(ctx, f.Path, in, func(item transcript.Item) bool {
		switch {
		case f.Named, compressed(f.Path):
			return false
		case item.Answered && r.TurnEnded && rested() >= TurnWritten:
			return false
		}
		return rested() < cmp.Or(r.StillWritten, StillWritten)
	})
}

func compressed(path string) bool {
	path = strings.ToLower(path)
	return strings.HasSuffix(path, ".gz") || strings.HasSuffix(path, ".zst")
}

// database imports a recording that is a SQLite database. The database says which messages are finished, so the time of
// its last change does not matter.
func (r *run) database(ctx context.Context, f transcript.File, size int64) (unread, err error) {
	counted := &countingReader{n: size}
	return r.items(ctx, f.Path, counted, func(transcript.Item) bool { return !f.Named }, func(yield func(transcript.Item) error, options ...transcript.Option) (err error) {
		r.counts.Until, err = transcript.ReadDatabase(ctx, f.Path, r.Format, r.Since, yield, options...)
		return err
	})
}

// recording imports one recording from a reader; growing reports whether its agent may still be writing an open item.
// Its errors are those of file.
func (r *run) recording(ctx context.Context, name string, in io.Reader, growing func(transcript.Item) bool) (unread, err error) {
	counted := &countingReader{Reader: in}
	return r.items(ctx, name, counted, growing, func(yield func(transcript.Item) error, options ...transcript.Option) error {
		return transcript.Read(ctx, counted, name, r.Format, yield, options...)
	})
}

// items imports the items that read yields. Its errors are those of file.
func (r *run) items(ctx context.Context, name string, counted *countingReader, growing func(transcript.Item) bool, read func(func(transcript.Item) error, ...transcript.Option) error) (unread, err error) {
	r.name, r.moves, r.cleaner = name, moves{}, cmp.Or(r.Cleaner, &intake.Cleaner{})
	unread = read(func(item transcript.Item) error {
		r.counts.Read++
		if item.Open && growing(item) {
			r.counts.HeldBack++
			return nil
		}
		if item.Err != nil {
			r.reject(item.Err)
			if r.refused++; r.MaxRefused > 0 && r.refused > r.MaxRefused {
				err = fmt.Errorf("more than %d %w", r.MaxRefused, ErrRefused)
			}
			return err
		}
		if refused := r.clean(&item); refused != nil {
			r.reject(refused)
			return nil
		}
		var refused *transcript.LineError
		if refused, err = r.settle(ctx, &item); err != nil {
			return err
		}
		if refused != nil {
			r.reject(refused)
			return nil
		}
		r.conversations[item.Event.Subject] = true
		r.batch = append(r.batch, item)
		r.bytes += len(item.Event.Data)
		if len(r.batch) < batchEvents && r.bytes < batchBytes && !isMoved(&item) {
			return nil
		}
		if isMoved(&item) {
			err = r.flush(ctx)
		} else {
			err = r.send(ctx)
		}
		r.progress(counted)
		return err
	}, transcript.OnSkip(r.skip))
	if err == nil || errors.Is(err, ErrRefused) {
		err = errors.Join(err, r.flush(ctx))
	} else {
		err = errors.Join(err, r.settled(ctx)) // for the report
	}
	r.progress(counted)
	if err != nil {
		return nil, err
	}
	return unread, nil
}

// clean removes frames and secrets from an event, except from copies of a log, which stay as they are.
func (r *run) clean(item *transcript.Item) *transcript.LineError {
	if item.Format == transcript.FormatCloudEvents && !r.RedactAll {
		return nil
	}
	r.cleaner.Redact = nil
	if r.RedactAll || transcript.IsNative(item.Format) {
		r.cleaner.Redact = r.Redact
	}
	e, changed, err := r.cleaner.Clean(item.Event)
	if err != nil {
		return &transcript.LineError{Line: item.Line, Reason: err.Error(), Err: err}
	}
	if changed {
		item.Event, item.Cleaned = e, true
		if r.Redact != nil && e.Extension(events.ExtensionRedaction) == r.Redact.Version() {
			r.counts.Redacted++
		}
	}
	return nil
}

func (r *run) reject(err *transcript.LineError) {
	r.counts.Rejected++
	if r.Rejected != nil {
		r.Rejected(r.name, err)
	}
}

// maxSkips bounds the keys of Report.Skipped, because they come from the files.
const maxSkips = 100

func (r *run) skip(s transcript.Skip) {
	key := s.String()
	if r.counts.Skipped == nil {
		r.counts.Skipped = map[string]int{}
	}
	if r.counts.Skipped[key] == 0 && len(r.counts.Skipped) >= maxSkips {
		key = "others"
	}
	r.counts.Skipped[key]++
}

func (r *run) progress(c *countingReader) {
	if r.Progress != nil {
		r.Progress(c.n-c.told, r.counts.Read)
		c.told = c.n
	}
}

// flush publishes what was read, and waits for the acknowledgements.
func (r *run) flush(ctx context.Context) error {
	if err := r.send(ctx); err != nil {
		return err
	}
	return r.settled(ctx)
}

// send publishes what was read while the next batch is read. It first waits for the batch before,
// so that the log keeps the order.
func (r *run) send(ctx context.Context) error {
	if err := r.settled(ctx); err != nil {
		return err
	}
	if len(r.batch) == 0 {
		return ctx.Err()
	}
	s := &sent{items: r.batch, done: make(chan struct{})}
	r.batch, r.bytes, r.sent = make([]transcript.Item, 0, len(s.items)), 0, s
	go func() {
		defer close(s.done)
		s.err = r.publish(ctx, s)
	}()
	return nil
}

// publish publishes the events that the read model does not know.
func (r *run) publish(ctx context.Context, s *sent) (err error) {
	list := make([]events.Event, len(s.items))
	for i, item := range s.items {
		list[i] = item.Event
	}
	s.fresh = s.items
	if r.Lookup != nil {
		if s.known, err = r.Lookup(ctx, list); err != nil {
			return err
		}
		list, s.fresh = list[:0], make([]transcript.Item, 0, len(s.items))
		for i, k := range s.known {
			if k.Seq == 0 {
				list, s.fresh = append(list, s.items[i].Event), append(s.fresh, s.items[i])
			}
		}
	}
	settle, err := r.admit(list)
	if err != nil {
		return err
	}
	defer settle()
	s.acks, err = r.log.PublishAll(ctx, r.Tenant, list)
	return err
}

func (r *run) admit(list []events.Event) (settle func(), err error) {
	if r.Admit == nil || len(list) == 0 {
		return func() {}, nil
	}
	size := 0
	for i := range list {
		size += len(list[i].Data)
	}
	return r.Admit(len(list), size)
}

// settled waits for the batch that was sent, and counts its events.
func (r *run) settled(ctx context.Context) error {
	s := r.sent
	if s == nil {
		return nil
	}
	<-s.done
	r.sent = nil
	for i, k := range s.known {
		if k.Seq != 0 {
			r.known(s.items[i], k)
		}
	}
	r.acknowledged(s.fresh, s.acks)
	if !isRefusal(s.err) {
		return s.err
	}
	return r.publishSome(ctx, s.fresh[len(s.acks):])
}

// publishSome publishes events of which the log refuses one or more, because it exceeds a limit or has the id of another
// event. The log may refuse a whole batch for that, so smaller and smaller ones are tried.
func (r *run) publishSome(ctx context.Context, items []transcript.Item) error {
	if len(items) == 1 {
		return r.publishOne(ctx, items[0])
	}
	middle := len(items) / 2
	for _, half := range [][]transcript.Item{items[:middle], items[middle:]} {
		list := make([]events.Event, len(half))
		for i, item := range half {
			list[i] = item.Event
		}
		acks, err := r.log.PublishAll(ctx, r.Tenant, list)
		r.acknowledged(half, acks)
		if isRefusal(err) {
			err = r.publishSome(ctx, half[len(acks):])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) publishOne(ctx context.Context, item transcript.Item) error {
	ack, err := r.log.Publish(ctx, r.Tenant, item.Event)
	var other *eventlog.OtherContentError
	switch {
	case errors.As(err, &other) && (item.Cleaned || item.Repeated || r.FirstCounts):
		r.counts.Duplicate++
	case errors.As(err, &other):
		r.reject(otherContent(&item, other.Seq))
	case isRefusal(err):
		r.reject(&transcript.LineError{Line: item.Line, Reason: err.Error(), Err: err})
	case err != nil:
		return err
	default:
		r.acknowledged([]transcript.Item{item}, []eventlog.Ack{ack})
	}
	return nil
}

// isRefusal reports whether the log refused this one event but accepts others.
func isRefusal(err error) bool {
	return errors.Is(err, eventlog.ErrTooLarge) || errors.Is(err, eventlog.ErrOtherContent) || errors.Is(err, events.ErrInvalid)
}

// otherContent returns the refusal of an event whose identity another event has.
func otherContent(item *transcript.Item, seq uint64) *transcript.LineError {
	return &transcript.LineError{Line: item.Line, Reason: fmt.Sprintf("the log has different content under the id %q at sequence %d; the first one counts", item.Event.ID, seq)}
}

// known counts an event whose identity the read model knows.
func (r *run) known(item transcript.Item, k Known) {
	conversation := item.Event.Subject
	switch {
	case k.Content != "" && isMoved(&item): // its range may differ in this log
		r.counts.Duplicate++
	case k.Content == item.Event.Content().String():
		r.counts.Duplicate++
		r.moves.note(conversation, item.Seq, k.Seq)
	case k.Content == "":
		r.counts.Deleted++
		if r.Deleted != nil && !r.deleted[conversation] {
			r.Deleted(r.name, &transcript.LineError{Line: item.Line, Reason: fmt.Sprintf("conversation %q was deleted at sequence %d, so its events are not imported", conversation, k.Seq)})
		}
		r.deleted[conversation] = true
	case item.Cleaned || item.Repeated || r.FirstCounts: // it was cleaned by other rules then; the event in the log counts
		r.counts.Duplicate++
	case readOtherwise(&item.Event, k.Content): // by an earlier version of mneme
		r.counts.Duplicate++
	default:
		r.reject(otherContent(&item, k.Seq))
	}
}

// acknowledged counts the first len(acks) items, which the log has acknowledged.
func (r *run) acknowledged(items []transcript.Item, acks []eventlog.Ack) {
	for i, ack := range acks {
		r.moves.note(items[i].Event.Subject, items[i].Seq, ack.Seq)
		if ack.Duplicate {
			r.counts.Duplicate++
		} else {
			r.counts.Published++
		}
		r.counts.LastSeq = max(r.counts.LastSeq, ack.Seq)
	}
}

// countingReader counts the compressed bytes that were read.
type countingReader struct {
	io.Reader
	n, told int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // the caller's report names the file
	}
	return n, err
}
