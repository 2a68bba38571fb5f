package backup

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// messageWithin is how long the server may take for the next event of an interrupted restore. It sends none if somebody
// removes them meanwhile.
const messageWithin = 30 * time.Second

// ErrNotEmpty: the log holds events that are not in the backup.
var ErrNotEmpty = errors.New("the log is not empty")

// The server gives up a restore in which no chunk is finished for 5 s, and it finishes the last chunk
// of an S2 block only after it has stored and synced every message of the block. A block of a
// snapshot holds 1 MB, thousands of events. So what is sent has small blocks and chunks.
const (
	sentBlock = 16 << 10
	sentChunk = 16 << 10
	window    = 8 // chunks on their way to the server
)

// Options say how the restored log differs from the one that was backed up. Zero values keep the values of the empty log
// that is replaced, or those of the backup, but for one copy on a single server.
type Options struct {
	MaxBytes int64 // at which the log is full
	Replicas int
}

// Restore makes the log from a backup, with its sequences, times and message ids, and with mneme's settings where somebody
// had changed them. It verifies the whole backup first. An empty log is replaced, even if it has other partitions, which
// running programs notice, and so is what an interrupted restore of the same backup left.
//
// It returns [ErrNotEmpty], the errors of [Verify], or an error of the server. After the last, run
// it again: until it succeeds, every program refuses the log with [natsdeploy.ErrRestoring].
func Restore(ctx context.Context, conn *nats.Conn, dir string, o Options, progress Progress) (Manifest, error) {
	size := int64(0)
	if info, err := os.Stat(filepath.Join(dir, snapshotFile)); err == nil {
		size = info.Size()
	}
	done := int64(0)
	m, saved, err := verify(dir, nil, func(n int) {
		done += int64(n)
		progress("verifying", done, size)
	})
	if err != nil {
		return m, err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return m, err
	}
	var request struct {
		Config map[string]json.RawMessage `json:"config"`
		State  json.RawMessage            `json:"state"`
	}
	if err := json.Unmarshal(saved, &request); err != nil {
		return m, fmt.Errorf("%s: %w", filepath.Join(dir, configFile), err)
	}
	var state struct{ Bytes uint64 }
	if err := json.Unmarshal(request.State, &state); err != nil {
		return m, fmt.Errorf("%s: %w", filepath.Join(dir, configFile), err)
	}
	if err := makeRoom(ctx, js, dir, state.Bytes, &o); err != nil {
		return m, err
	}
	if err := configure(request.Config, o); err != nil {
		return m, err
	}
	if err := send(ctx, conn, filepath.Join(dir, snapshotFile), request, func(n int64) { progress("restoring", n, int64(state.Bytes)) }); err != nil {
		return m, fmt.Errorf("restore the log: %w", err)
	}
	stream, err := js.Stream(ctx, natsdeploy.Stream)
	if err != nil {
		return m, err
	}
	if s := stream.CachedInfo().State; s.LastSeq != m.Last || s.Msgs != m.Events {
		return m, fmt.Errorf("the restored log has %d events up to sequence %d, the backup %d up to %d: run the restore again", s.Msgs, s.LastSeq, m.Events, m.Last)
	}
	return m, natsdeploy.Restored(ctx, js)
}

// streamOffline is JetStream's code for a stream whose servers are down.
const streamOffline jetstream.ErrorCode = 10118

// makeRoom removes a log that holds nothing but what the backup holds, after it has taken over
// the size and replicas of a log that was never used.
func makeRoom(ctx context.Context, js jetstream.JetStream, dir string, needed uint64, o *Options) error {
	stream, err := js.Stream(ctx, natsdeploy.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if js.Conn().ConnectedClusterName() == "" {
			o.Replicas = max(o.Replicas, 1) // a single server refuses the copies of a cluster
		}
		return o.fit(needed)
	}
	var offline *jetstream.APIError
	if errors.As(err, &offline) && offline.ErrorCode == streamOffline || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("no NATS server answers for the log, or for the part of it that an interrupted restore left: start those that are down, and run the restore again: %w", err)
	}
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	if natsdeploy.IsRestoring(info.Config) {
		if err := within(ctx, stream, dir); err != nil {
			return err
		}
	} else if info.State.LastSeq > 0 {
		return fmt.Errorf("%w: it ends at sequence %d; a log that holds events is never replaced", ErrNotEmpty, info.State.LastSeq)
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, info.Config.MaxBytes)
	o.Replicas = cmp.Or(o.Replicas, info.Config.Replicas)
	if err := o.fit(needed); err != nil {
		return err
	}
	return js.DeleteStream(ctx, natsdeploy.Stream)
}

// fit returns an error if the log would be full as soon as it is restored.
func (o *Options) fit(needed uint64) error {
	if o.MaxBytes > 0 && needed > uint64(o.MaxBytes) {
		return fmt.Errorf("%w: the events of the backup take %d bytes, and the log would be full at %d; name a larger size with --log-size", natsdeploy.ErrNoSpace, needed, o.MaxBytes)
	}
	return nil
}

// within returns [ErrNotEmpty] unless each message of the stream is in the backup, at the same
// sequence. Agents that publish to NATS directly could have added others.
func within(ctx context.Context, stream jetstream.Stream, dir string) error {
	left := stream.CachedInfo().State.Msgs
	if left == 0 {
		return nil
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	next := func() (jetstream.Msg, uint64, error) {
		waiting, cancel := context.WithTimeout(ctx, messageWithin)
		defer cancel()
		m, err := messages.Next(jetstream.NextContext(waiting))
		if err != nil && waiting.Err() != nil && ctx.Err() == nil {
			return nil, 0, fmt.Errorf("the server sent no event of the log within %s, although %d were left to compare: run the restore again; if it says the same, look into the NATS server's log output", messageWithin, left)
		}
		if err != nil {
			return nil, 0, err
		}
		meta, err := m.Metadata()
		if err != nil {
			return nil, 0, err
		}
		return m, meta.Sequence.Stream, nil
	}
	m, seq, err := next()
	if err != nil {
		return err
	}
	done := errors.New("all found")
	_, _, err = verify(dir, func(e *entry) error {
		if e.Seq < seq {
			return nil
		}
		if e.Seq > seq || !e.same(m.Subject(), m.Headers(), m.Data()) {
			return fmt.Errorf("%w: an interrupted restore left events, and sequence %d is not the one of this backup; use the same backup, or remove the stream %s (this deletes its events)", ErrNotEmpty, seq, natsdeploy.Stream)
		}
		if left--; left == 0 {
			return done
		}
		var err error
		m, seq, err = next()
		return err
	}, nil)
	if errors.Is(err, done) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%w: after an interrupted restore it holds %d events from sequence %d on that are not in this backup; remove the stream %s to give them up", ErrNotEmpty, left, seq, natsdeploy.Stream)
	}
	return err
}

// configure changes the configuration that a log is restored with.
func configure(config map[string]json.RawMessage, o Options) error {
	set := func(name string, value any) error {
		raw, err := json.Marshal(value)
		config[name] = raw
		return err
	}
	var metadata map[string]string
	if raw, ok := config["metadata"]; ok {
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return fmt.Errorf("%w: metadata: %w", ErrNotABackup, err)
		}
	}
	if err := natsdeploy.PutBack(config); err != nil {
		return fmt.Errorf("%w: %w", ErrNotABackup, err)
	}
	err := set("metadata", natsdeploy.Restoring(metadata))
	if o.MaxBytes > 0 {
		err = errors.Join(err, set("max_bytes", o.MaxBytes))
	}
	if o.Replicas > 0 {
		err = errors.Join(err, set("num_replicas", o.Replicas))
	}
	return err
}

// send gives the server a snapshot, some chunks ahead of its answers.
func send(ctx context.Context, conn *nats.Conn, path string, request any, sent func(bytes int64)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	// An answer that was lost with a connection never comes.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lost := conn.StatusChanged(nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	defer conn.RemoveStatusListener(lost)
	go func() {
		select {
		case <-lost:
			cancel(errors.New("the connection to NATS was lost: run the restore again"))
		case <-ctx.Done():
		}
	}()
	var answer struct {
		Error   *apiError `json:"error"`
		Subject string    `json:"deliver_subject"`
	}
	if err := ask(ctx, conn, "$JS.API.STREAM.RESTORE."+natsdeploy.Stream, request, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return answer.Error.asRestoreError()
	}
	inbox := conn.NewRespInbox()
	answers, err := conn.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = answers.Unsubscribe() }()
	snapshot, raw := recode(f)
	defer func() { _ = snapshot.Close() }()
	chunk, waiting := make([]byte, sentChunk), 0
	for {
		n, err := io.ReadFull(snapshot, chunk)
		if err == io.EOF {
			break
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return err
		}
		if waiting == window {
			if err := accepted(ctx, answers, silence); err != nil {
				return err
			}
			waiting--
		}
		if err := conn.PublishRequest(answer.Subject, inbox, chunk[:n]); err != nil {
			return err
		}
		waiting++
		sent(raw.Load())
	}
	for ; waiting > 0; waiting-- {
		if err := accepted(ctx, answers, silence); err != nil {
			return err
		}
	}
	// The answer to the empty chunk comes when the stream exists: first the server reads again what it has written.
	if err := conn.PublishRequest(answer.Subject, inbox, nil); err != nil {
		return err
	}
	return accepted(ctx, answers, silence+time.Duration(raw.Load()/slowestRead)*time.Second)
}

// slowestRead is how many bytes a second a server reads from a disk, at least.
const slowestRead = 5 << 20

// recode gives a snapshot small S2 blocks. raw counts the bytes without compression.
func recode(snapshot io.Reader) (recoded *io.PipeReader, raw *atomic.Int64) {
	raw = new(atomic.Int64)
	recoded, w := io.Pipe()
	go func() {
		compressed := s2.NewWriter(w, s2.WriterBlockSize(sentBlock), s2.WriterConcurrency(1))
		_, err := io.Copy(io.MultiWriter(compressed, counter{raw}), s2.NewReader(snapshot))
		w.CloseWithError(errors.Join(err, compressed.Close()))
	}()
	return recoded, raw
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// accepted waits for the answer to one chunk. The server writes what it is given before it answers, and gives up if that takes
// 5 s. One that no longer runs says nothing: in a cluster this client may be connected to another one, and so does not notice.
func accepted(ctx context.Context, answers *nats.Subscription, within time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	m, err := answers.NextMsgWithContext(waiting)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil && waiting.Err() != nil {
		return fmt.Errorf("the NATS server that writes the log has not answered for %s: start it if it is down, and run the restore again", within)
	}
	if errors.Is(err, nats.ErrNoResponders) {
		return errors.New("the NATS server that writes the log is down, or gave up because its disk took longer than 5 s for a few events, as its log then says: start it if it is down, and run the restore again")
	}
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(m.Data)) == 0 {
		return nil
	}
	var answer struct {
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return answer.Error.asRestoreError()
	}
	return nil
}

func (e *apiError) asRestoreError() error {
	const memory, storage, exists, tooLarge = 10028, 10047, 10130, 10023
	switch e.Code {
	case memory, storage, tooLarge:
		return fmt.Errorf("%w: %s (%d); name a smaller log with --log-size, or give NATS more with max_file_store", natsdeploy.ErrNoSpace, e.Description, e.Code)
	case exists:
		return fmt.Errorf("%w: a program has created it just now; stop ingestor, file-tracker and summarizer, and run the restore again", ErrNotEmpty)
	}
	return e.asError()
}
