package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// ErrNoEvents means that there is nothing to measure with.
var ErrNoEvents = errors.New("no events found there")

// tenant owns all events of a measurement.
const tenant = "bench"

// Say receives the progress of a measurement.
type Say func(format string, args ...any)

var quiet = slog.New(slog.DiscardHandler)

// scratch is a temporary log on a server in this process.
type scratch struct {
	dir    string
	server *embedded.Server
	log    *eventlog.Log
}

// newScratch starts the server. listen is an address at which other processes reach it; "" for none.
func newScratch(ctx context.Context, settings natsdeploy.Settings, listen string) (_ *scratch, err error) {
	s := &scratch{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "mneme-bench-"); err != nil {
		return nil, err
	}
	if s.server, err = embedded.Start(ctx, embedded.Config{Dir: filepath.Join(s.dir, "nats"), Listen: listen}); err != nil {
		return nil, err
	}
	if _, err := s.server.Apply(ctx, settings); err != nil {
		return nil, err
	}
	s.log, err = openLog(ctx, "", s.server.InProcess())
	return s, err
}

// end ends the server.
func (s *scratch) end() {
	if s.log != nil {
		s.log.Conn().Close()
	}
	if s.server != nil {
		s.server.Stop()
	}
}

// close ends the server and removes the directory.
func (s *scratch) close() {
	s.end()
	_ = os.RemoveAll(s.dir)
}

// newFilled returns a scratch with the events of transcripts, see [scratch.fill].
func newFilled(ctx context.Context, settings natsdeploy.Settings, paths []string, say Say) (s *scratch, perSecond float64, state eventlog.State, err error) {
	if s, err = newScratch(ctx, settings, ""); err != nil {
		return nil, 0, state, err
	}
	if perSecond, state, err = s.fill(ctx, paths, say); err != nil {
		s.close()
		return nil, 0, state, err
	}
	return s, perSecond, state, nil
}

// fill publishes transcripts and returns the rate in events per second and the state of the log
// afterwards. Without events it returns [ErrNoEvents].
func (s *scratch) fill(ctx context.Context, paths []string, say Say) (perSecond float64, state eventlog.State, err error) {
	files, err := transcript.Find(paths)
	if len(files) == 0 {
		return 0, state, errors.Join(ErrNoEvents, err)
	}
	if err != nil {
		return 0, state, err
	}
	began := time.Now()
	report, err := importer.Import(ctx, s.log, files, importer.Options{Tenant: tenant, Format: transcript.Auto, Progress: func(_ int64, items int) {
		say("publishing, %d events", items)
	}})
	if report.Published == 0 && (err == nil || errors.Is(err, importer.ErrUnread)) {
		return 0, state, errors.Join(ErrNoEvents, err)
	}
	if err != nil {
		return 0, state, err
	}
	perSecond = float64(report.Published) / time.Since(began).Seconds()
	state, err = s.log.State(ctx)
	return perSecond, state, err
}

// apply applies the whole log to an empty store with the engine. It returns how long that took and
// the sequences at which the engine's transactions ended. Trouble with the store during that time
// is an error, because the time would include the waits.
func apply[U projection.Unit](ctx context.Context, log *eventlog.Log, p projection.Projection[U], store projection.Store[U], head uint64, options ...projection.Option) (took time.Duration, ends []uint64, err error) {
	var trouble bytes.Buffer
	projector, err := projection.NewProjector(p, log, store, slog.New(slog.NewTextHandler(&trouble, &slog.HandlerOptions{Level: slog.LevelWarn})), options...)
	if err != nil {
		return 0, nil, err
	}
	done := make(chan struct{})
	stop, err := log.WatchProgress(ctx, p.Name, 0, func(seq uint64) {
		if seq == 0 || len(ends) > 0 && ends[len(ends)-1] == seq {
			return // where it begins
		}
		if ends = append(ends, seq); seq == head {
			close(done)
		}
	})
	if err != nil {
		return 0, nil, err
	}
	defer stop()
	began := time.Now()
	projector.Start()
	defer projector.Stop()
	for {
		select {
		case <-done:
			return time.Since(began), ends, nil
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-time.After(time.Second):
			if s := projector.Status()[0]; s.Error != "" || s.Retries > 0 {
				projector.Stop()
				return 0, nil, fmt.Errorf("the projector was interrupted: %s", cmp.Or(s.Error, trouble.String()))
			}
		}
	}
}
