// Package importer brings recorded transcripts into the log. It is idempotent: an
// event that the log has is not published again, whenever it was published.
package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/eventlog"
)

// Events are published in batches of this many, or of this many bytes.
const (
	batchEvents = 1000
	batchBytes  = 8 << 20
)

// stillWritten is how long after its last change a recording may be one that its
// agent still writes. It counts for plain files in a folder that is imported; a file
// that is named, or packed, is taken as it is.
const stillWritten = 2 * time.Minute

// ErrUnread says that files could not be read, or not to their end. The other files
// were imported.
var ErrUnread = errors.New("not everything could be read")

// ErrRefused says that an import ended because too many of its lines are no events, see
// Options.MaxRefused. What came before them was imported.
var ErrRefused = errors.New("lines are no valid events, so the rest was not read: look at the first ones, this is probably no recording")

// Known says what the read model holds under an event's identity.
type Known struct {
	Seq     uint64 // 0 if nothing; of a deleted conversation the one of its deletion
	Content string // fingerprint, see events.Event.Content; "" of a deleted conversation
}

// Options are what an import may be told.
type Options struct {
	Tenant string
	Format string // a format of package transcript, or auto
	// Lookup tells which events the read model knows, in the same order. Nil asks
	// nobody: then only the server's duplicate window and the read models drop repeats.
	Lookup func(context.Context, []events.Event) ([]Known, error)
	// Rejected is told about each line that could not be imported, and once about each
	// deleted conversation.
	Rejected func(file string, err *transcript.LineError)
	// MaxRefused ends the import with [ErrRefused] once more lines than this are no valid
	// events; 0 means never. Lines that contradict what the log has don't count.
	MaxRefused int
	// Progress is told how many packed bytes of a file were read since the last call,
	// and how many events were handled.
	Progress func(bytes int64, items int)
}

// Report counts what an import did: Read = Published + Duplicate + Rejected + HeldBack.
type Report struct {
	Read          int    `json:"read"`
	Published     int    `json:"published"`
	Duplicate     int    `json:"duplicate"`
	Rejected      int    `json:"rejected"`
	HeldBack      int    `json:"held_back"` // of messages that may still be written
	Conversations int    `json:"conversations"`
	LastSeq       uint64 `json:"last_seq"` // highest sequence of what was published
}

// Import publishes the events of files in their order. A file that can't be read is
// passed over; the error is then [ErrUnread] with the reasons, one a line.
//
// On another error the report says what is in the log by then; importing the same
// files again goes on from there.
func Import(ctx context.Context, log *eventlog.Log, files []transcript.File, o Options) (Report, error) {
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

// ImportFrom is [Import] of one recording that is read as it comes, under a name for
// messages. What it could read before the reader failed is imported.
func ImportFrom(ctx context.Context, log *eventlog.Log, name string, in io.Reader, o Options) (Report, error) {
	im := newRun(log, o)
	unread, err := im.recording(ctx, name, in, func() bool { return false })
	return im.report(), errors.Join(err, unread)
}

func newRun(log *eventlog.Log, o Options) *run {
	return &run{log: log, Options: o, conversations: map[string]bool{}, deleted: map[string]bool{}}
}

type run struct {
	log *eventlog.Log
	Options
	counts        Report
	conversations map[string]bool
	deleted       map[string]bool // conversations of which that was said
	moves         moves
	name          string
	batch         []transcript.Item
	bytes         int
	refused       int // lines that are no valid events
}

func (r *run) report() Report {
	r.counts.Conversations = len(r.conversations)
	return r.counts
}

// file imports one file. unread, which names the file, says why it could not be read
// or not to its end; err ends the import.
func (r *run) file(ctx context.Context, f transcript.File) (unread, err error) {
	in, err := f.Open()
	if err != nil {
		return err, nil
	}
	defer func() { _ = in.Close() }()
	// Asked for once the end was read: what is old then was not written meanwhile.
	growing := sync.OnceValue(func() bool {
		if f.Named || strings.HasSuffix(strings.ToLower(f.Path), ".gz") {
			return false
		}
		info, err := in.Stat()
		return err == nil && time.Since(info.ModTime()) < stillWritten
	})
	return r.recording(ctx, f.Path, in, growing)
}

// recording imports one recording, of which growing tells whether it may still be
// written. Its errors are those of file.
func (r *run) recording(ctx context.Context, name string, in io.Reader, growing func() bool) (unread, err error) {
	r.name, r.moves = name, moves{}
	counted := &countingReader{Reader: in}
	unread = transcript.Read(ctx, counted, name, r.Format, func(item transcript.Item) error {
		r.counts.Read++
		if item.Open && growing() {
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
		err = r.flush(ctx)
		r.progress(counted)
		return err
	})
	if err == nil || errors.Is(err, ErrRefused) {
		err = errors.Join(err, r.flush(ctx))
	}
	r.progress(counted)
	if err != nil {
		return nil, err
	}
	return unread, nil
}

func (r *run) reject(err *transcript.LineError) {
	r.counts.Rejected++
	if r.Rejected != nil {
		r.Rejected(r.name, err)
	}
}

func (r *run) progress(c *countingReader) {
	if r.Progress != nil {
		r.Progress(c.n-c.told, r.counts.Read)
		c.told = c.n
	}
}

// flush publishes what the read model does not know.
func (r *run) flush(ctx context.Context) error {
	items := r.batch
	r.batch, r.bytes = r.batch[:0], 0
	if len(items) == 0 {
		return ctx.Err()
	}
	list := make([]events.Event, len(items))
	for i, item := range items {
		list[i] = item.Event
	}
	if r.Lookup != nil {
		known, err := r.Lookup(ctx, list)
		if err != nil {
			return err
		}
		list = list[:0]
		unknown := items[:0]
		for i, k := range known {
			if item := items[i]; k.Seq == 0 {
				list, unknown = append(list, item.Event), append(unknown, item)
			} else {
				r.known(item, k)
			}
		}
		items = unknown
	}
	acks, err := r.log.PublishAll(ctx, r.Tenant, list)
	r.acknowledged(items, acks)
	if !isRefusal(err) {
		return err
	}
	// One of the others is over the server's limit, or has the id of another event: all of
	// them are published by themselves.
	for _, item := range items[len(acks):] {
		ack, err := r.log.Publish(ctx, r.Tenant, item.Event)
		var other *eventlog.OtherContentError
		switch {
		case errors.As(err, &other):
			r.reject(otherContent(&item, other.Seq))
		case isRefusal(err):
			r.reject(&transcript.LineError{Line: item.Line, Reason: err.Error(), Err: err})
		case err != nil:
			return err
		default:
			r.acknowledged([]transcript.Item{item}, []eventlog.Ack{ack})
		}
	}
	return nil
}

// isRefusal tells whether the log refused one event, and takes others.
func isRefusal(err error) bool {
	return errors.Is(err, eventlog.ErrTooLarge) || errors.Is(err, eventlog.ErrOtherContent)
}

// otherContent is the refusal of an event whose identity another event has.
func otherContent(item *transcript.Item, seq uint64) *transcript.LineError {
	return &transcript.LineError{Line: item.Line, Reason: fmt.Sprintf("the log has another content under the id %q at sequence %d; the first one counts", item.Event.ID, seq)}
}

// known counts an event of which the read model knows the identity.
func (r *run) known(item transcript.Item, k Known) {
	conversation := item.Event.Subject
	switch {
	case k.Content != "" && isMoved(&item): // its range here may be another one
		r.counts.Duplicate++
	case k.Content == item.Event.Content().String():
		r.counts.Duplicate++
		r.moves.note(conversation, item.Seq, k.Seq)
	case k.Content == "" && r.deleted[conversation]:
		r.counts.Rejected++
	case k.Content == "":
		r.deleted[conversation] = true
		r.reject(&transcript.LineError{Line: item.Line, Reason: fmt.Sprintf("conversation %q was deleted at sequence %d; its events are not imported again", conversation, k.Seq)})
	default:
		r.reject(otherContent(&item, k.Seq))
	}
}

// acknowledged counts the first of items, of which the log has said that it has them.
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

// countingReader counts the packed bytes that were read.
type countingReader struct {
	io.Reader
	n, told int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // whoever reports it names the file
	}
	return n, err
}
