package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// leastFree is the free disk space below which doctor warns, whatever the log's size,
// because read models and the server's own files grow too.
const leastFree = 1 << 30

// data checks a data directory on this machine, whether or not a process uses it.
func (e *examination) data(ctx context.Context) {
	info, err := os.Stat(e.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.add("data", Failed, e.Data+" does not exist", "name the data directory with --data; mneme up creates it")
		return
	case err != nil:
		e.add("data", Failed, err.Error(), "give this user access to it")
		return
	case !info.IsDir():
		e.add("data", Failed, e.Data+" is a file", "name the data directory with --data")
		return
	}
	if held, err := isLocked(filepath.Join(e.Data, "lock")); err != nil {
		e.add("data", Warning, fmt.Sprintf("%s: its lock can't be read: %v", e.Data, err), "give this user access to it")
	} else if pid, _ := os.ReadFile(filepath.Join(e.Data, "lock")); held {
		e.add("data", OK, fmt.Sprintf("%s is in use by process %s", e.Data, strings.TrimSpace(string(pid))), "")
	} else {
		e.add("data", OK, e.Data+" is not in use by mneme up", "")
	}
	e.disk()
	if e.Models.Store == "neo4j" {
		return
	}
	models := service.NewModels(e.Data, e.stores())
	defer func() { _ = models.Close() }()
	for _, m := range readmodel.Ours() {
		if !m.Computed {
			e.model(ctx, models, m)
		}
	}
	e.setAside()
}

// setAside reports damaged files that were moved aside at startup.
func (e *examination) setAside() {
	list, err := sqlitestore.AllSetAside(filepath.Join(e.Data, "models"))
	if err != nil {
		e.add("damaged files", Warning, err.Error(), "give this user access to it")
	}
	for _, path := range list {
		e.add("damaged files", Warning, path+" was damaged and was moved aside at startup; its read model was rebuilt from the log",
			"find out why files get damaged: a failing disk, or a copy taken while mneme ran; then delete it, with its -wal and -shm")
	}
}

// stores returns the location of the read models.
func (e *examination) stores() worker.Stores { return worker.NewStores(e.Data, e.Models) }

// disk compares the free space with what the log may still take.
func (e *examination) disk() {
	free, ok := natsdeploy.FreeBytes(e.Data)
	if !ok {
		return
	}
	detail := size(free) + " free"
	switch {
	case free < leastFree/4:
		e.add("disk", Failed, detail, "make room: with a full disk NATS stops answering, and nothing can be published")
	case free < leastFree:
		e.add("disk", Warning, detail, "make room before the disk is full: NATS then stops answering")
	case e.room > 0 && free < 2*e.room:
		e.add("disk", Warning, fmt.Sprintf("%s, the log may take %s more and the read models about as much again", detail, size(e.room)),
			"make room, or lower the log's limit: nats stream edit "+natsdeploy.Stream+" --max-bytes")
	default:
		e.add("disk", OK, detail, "")
	}
}

// model checks the file of a read model.
func (e *examination) model(ctx context.Context, models *service.Models, m readmodel.Info) {
	pinned, err := models.Open(ctx, m.Name)
	if err == nil {
		defer pinned.Release()
	}
	check := "read model " + m.Name
	stores, generation := e.stores(), projection.FirstGeneration
	if builds, err := stores.Generations().Builds(ctx, m.Name); err == nil {
		generation = builds.Serving
	}
	path := stores.Path(m.Name, generation)
	switch {
	case errors.Is(err, worker.ErrNotThere) && m.Absent != "":
		e.add(check, OK, "missing: "+m.Absent, "")
		return
	case errors.Is(err, worker.ErrNotThere):
		e.add(check, Warning, path+" does not exist", "start mneme up, or its program, which builds it from the log")
		return
	case errors.Is(err, projection.ErrRebuild):
		every := filepath.Join(filepath.Dir(path), "*-[0-9]*.db*") // another version made them all
		e.add(check, Failed, err.Error(), "stop mneme, move "+every+" away, start again: all read models are rebuilt from the log")
		return
	case errors.Is(err, projection.ErrDamaged):
		e.add(check, Failed, err.Error(), damagedRemedy(m.Name))
		return
	case err != nil:
		e.add(check, Failed, fmt.Sprintf("%s: %v", path, err), "stop mneme, move the file away, start again: it is rebuilt from the log")
		return
	}
	use := "; no process writes to it"
	if held, err := isLocked(path + ".lock"); err == nil && held {
		use = "; a running process writes to it"
	}
	e.doing(fmt.Sprintf("%s, reading its file for up to %s", check, checkWithin))
	if checked, err := checkFile(ctx, path); errors.Is(err, projection.ErrDamaged) {
		e.add(check, Failed, err.Error(), damagedRemedy(m.Name))
		return
	} else if err != nil {
		e.add(check, Warning, err.Error(), "check the disk")
	} else if !checked {
		use += fmt.Sprintf("; no damage found in its file within %s, which was too short to check all of it", checkWithin)
	}
	e.positions(ctx, m, pinned.Model, use, "stop mneme, move "+path+" away, start again: it is rebuilt from the log")
}

// checkWithin is how long the check of one file may take: about 10 GB on a fast disk.
const checkWithin = 10 * time.Second

// checkFile looks for damage in a file, and reports whether it checked the whole file.
func checkFile(ctx context.Context, path string) (whole bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	err = sqlitestore.Check(ctx, path)
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

// damagedRemedy says what to do about a damaged file, whether or not mneme runs.
func damagedRemedy(name string) string {
	return "mneme rebuild " + name + "; or, if mneme up is not running, start it: it moves aside a file that can't be opened and rebuilds it"
}

// positions checks the checkpoints and failed events of a read model. remedy is for a read
// model that can't be read.
func (e *examination) positions(ctx context.Context, m readmodel.Info, store projection.ReadStore, use, remedy string) {
	check := "read model " + m.Name
	checkpoints, err := store.Checkpoints(ctx)
	if err != nil {
		e.add(check, Failed, err.Error(), remedy)
		return
	}
	for _, cp := range checkpoints {
		detail := fmt.Sprintf("partition %d at checkpoint %d%s", cp.Partition, cp.Seq, use)
		switch mine := m.Of().Fingerprint(); {
		case cp.Halted != "":
			e.add(check, Failed, detail+"; halted: "+cp.Halted, "do what the message says; what it has applied remains readable")
		case cp.Fingerprint != mine:
			remedy := "do what the message says, or use the build that created it"
			if !m.Enriches {
				remedy = "mneme up rebuilds it by itself; with other programs, " + remedy
			}
			e.add(check, Warning, detail+"; programs of this build halt on it: "+projection.OtherBuild(m.Name, cp.Fingerprint, mine).Error(), remedy)
		default:
			e.add(check, OK, detail, "")
		}
	}
	if len(checkpoints) == 0 {
		e.add(check, OK, "empty"+use, "")
	}
	byClass, err := store.CountFailed(ctx)
	if err != nil {
		e.add(check, Failed, err.Error(), remedy)
		return
	}
	skipped := 0
	for _, n := range byClass {
		skipped += n
	}
	if skipped > 0 {
		e.add(check, Warning, fmt.Sprintf("events that were skipped: %d", skipped), "mneme failed list says why, while mneme runs")
	}
}

// isLocked reports whether a process holds a lock. It takes the lock for a moment and
// creates no file.
func isLocked(path string) (bool, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if err != nil {
		return false, err
	}
	return !free, lock.Unlock()
}
