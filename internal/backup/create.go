package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats.go"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/version"
)

// chunkSize is what one NATS message carries.
const chunkSize = 128 << 10

// silence is how long the server may send nothing before a backup or restore gives up. Tests set it.
var silence = 30 * time.Second

// ErrExists: the place of a new backup is taken.
var ErrExists = errors.New("already exists")

// ErrRunning: another Create is writing the same backup.
var ErrRunning = errors.New("another backup is being written there")

// Progress is called while bytes are written or read. Total is an estimate, 0 if unknown.
type Progress func(what string, bytes, total int64)

// apiError is an error in an answer of JetStream.
type apiError struct {
	Code        int    `json:"err_code"`
	Description string `json:"description"`
}

// Create writes a backup of the log into a new directory while everything runs: all events up to
// the last sequence at its start. It reads back what it has written before it returns.
//
// A directory DIR.partial that an interrupted Create left is replaced; what else has this name stays, and is an error.
//
// It returns [ErrExists], [ErrRunning], [natsdeploy.ErrNoStream], or an error of the server or the disk; then
// no backup exists.
func Create(ctx context.Context, conn *nats.Conn, dir string, progress Progress) (Manifest, error) {
	dir = filepath.Clean(dir)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s %w: name a new directory", dir, ErrExists)
		}
		return Manifest{}, err
	}
	partial := dir + partialSuffix
	if err := os.MkdirAll(partial, 0o700); err != nil {
		return Manifest{}, err
	}
	lock := flock.New(partial, flock.SetFlag(os.O_RDONLY))
	if ok, err := lock.TryLock(); err == nil && !ok { // a network's file system may have no locks for directories
		return Manifest{}, fmt.Errorf("%s: %w", dir, ErrRunning)
	}
	defer func() { _ = lock.Close() }()
	if err := removeInterrupted(partial); err != nil {
		return Manifest{}, err
	}
	m, err := create(ctx, conn, partial, progress)
	if err == nil {
		err = os.Rename(partial, dir)
	}
	if err != nil {
		return m, errors.Join(err, os.RemoveAll(partial))
	}
	return m, syncDir(filepath.Dir(dir))
}

// removeInterrupted removes the files that an interrupted Create left.
func removeInterrupted(partial string) error {
	files, err := os.ReadDir(partial)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !isOurs(f) {
			return fmt.Errorf("%s, where the backup is written first, holds %q, which is not of a backup: move it away, or name another directory", partial, f.Name())
		}
	}
	for _, f := range files {
		err = errors.Join(err, os.Remove(filepath.Join(partial, f.Name())))
	}
	return err
}

func create(ctx context.Context, conn *nats.Conn, dir string, progress Progress) (Manifest, error) {
	began := time.Now().UTC()
	config, err := fetch(ctx, conn, filepath.Join(dir, snapshotFile), progress)
	if err != nil {
		return Manifest{}, fmt.Errorf("back up the log: %w", err)
	}
	if err := writeDurably(filepath.Join(dir, configFile), config); err != nil {
		return Manifest{}, err
	}
	info, err := os.Stat(filepath.Join(dir, snapshotFile))
	if err != nil {
		return Manifest{}, err
	}
	done := int64(0)
	m, err := scan(filepath.Join(dir, snapshotFile), nil, nil, func(n int) {
		done += int64(n)
		progress("verifying", done, info.Size())
	})
	if err != nil {
		return m, fmt.Errorf("the backup that was just written is incomplete, run it again (it needs NATS 2.15 or later; the server is %s): %w", conn.ConnectedServerVersion(), err)
	}
	sum := sha256.Sum256(config)
	m.Format, m.Version, m.Time, m.Stream, m.Config = format, version.Get().String(), began, natsdeploy.Stream, hex.EncodeToString(sum[:])
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, err
	}
	if err := writeDurably(filepath.Join(dir, manifestFile), append(raw, '\n')); err != nil {
		return m, err
	}
	return m, syncDir(dir)
}

// fetch writes the server's snapshot to a file and returns the stream's configuration and state.
func fetch(ctx context.Context, conn *nats.Conn, path string, progress Progress) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	inbox := conn.NewRespInbox()
	sub, err := conn.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := sub.SetPendingLimits(-1, -1); err != nil { // the window of the server is the limit
		return nil, err
	}
	var answer struct {
		Error  *apiError       `json:"error,omitempty"`
		Config json.RawMessage `json:"config"`
		State  json.RawMessage `json:"state"`
	}
	request := map[string]any{"deliver_subject": inbox, "no_consumers": true, "chunk_size": chunkSize}
	if err := ask(ctx, conn, "$JS.API.STREAM.SNAPSHOT."+natsdeploy.Stream, request, &answer); err != nil {
		return nil, err
	}
	if answer.Error != nil {
		return nil, answer.Error.asError()
	}
	var state struct{ Bytes int64 }
	if err := json.Unmarshal(answer.State, &state); err != nil {
		return nil, err
	}
	written := int64(0)
	for {
		waiting, cancel := context.WithTimeout(ctx, silence)
		m, err := sub.NextMsgWithContext(waiting)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, fmt.Errorf("the server stopped sending after %d bytes: %w", written, err)
		}
		if len(m.Data) == 0 { // the end; earlier servers send no status
			if status := m.Header.Get("Status"); status != "" && status != "204" {
				return nil, fmt.Errorf("the server stopped after %d bytes: %s %s", written, status, m.Header.Get("Description"))
			}
			answer.Error = nil
			config, err := json.MarshalIndent(answer, "", "  ")
			return config, errors.Join(err, f.Sync(), f.Close())
		}
		if m.Reply != "" {
			if err := m.Respond(nil); err != nil {
				return nil, err
			}
		}
		n, err := f.Write(m.Data)
		if err != nil {
			return nil, err
		}
		written += int64(n)
		progress("backing up", written, state.Bytes)
	}
}

func (e *apiError) asError() error {
	const streamNotFound = 10059
	if e.Code == streamNotFound {
		return natsdeploy.ErrNoStream
	}
	return fmt.Errorf("NATS refused: %s (%d)", e.Description, e.Code)
}

// ask sends a request to the JetStream API.
func ask(ctx context.Context, conn *nats.Conn, subject string, request, answer any) error {
	raw, err := json.Marshal(request)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	m, err := conn.RequestWithContext(waiting, subject, raw)
	if err != nil {
		return err
	}
	return json.Unmarshal(m.Data, answer)
}
