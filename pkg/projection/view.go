package projection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// view is what a watch of the bucket has shown: which members exist, and who holds what.
type view struct {
	keys    keys
	watcher jetstream.KeyWatcher
	cancel  context.CancelFunc
	whole   bool // everything that existed at the start of the watch has arrived
	members map[string]bool
	held    []holding
	heard   time.Time // start of the watch, or its last update on this process's own key
}

// holding is the last known holder of a partition's lease.
type holding struct {
	process  string // "" if nobody holds it
	revision uint64
}

// watch starts a view. patience limits how long the server may take.
func watch(bucket jetstream.KeyValue, patience time.Duration, k keys, partitions int) (*view, error) {
	ctx, cancel := context.WithCancel(context.Background()) // also ends the watch
	late := time.AfterFunc(patience, cancel)
	watcher, err := bucket.WatchFiltered(ctx, []string{k.member("*"), k.leases() + "*"})
	if !late.Stop() {
		err = errors.Join(err, errNoAnswer)
	}
	if err != nil {
		cancel()
		if watcher != nil { // the watch started too late
			natsdeploy.Drain(watcher)
		}
		return nil, fmt.Errorf("watch the leases: %w", err)
	}
	return &view{keys: k, watcher: watcher, cancel: cancel, members: map[string]bool{}, held: make([]holding, partitions), heard: time.Now()}, nil
}

// errNoAnswer means that the server did not answer in time.
var errNoAnswer = errors.New("the server does not answer")

// end stops the watch.
func (v *view) end() {
	v.cancel()
	natsdeploy.Drain(v.watcher)
}

// see processes one update and reports whether it may change who should hold what.
func (v *view) see(e jetstream.KeyValueEntry, self string) bool {
	if e == nil {
		v.whole = true
		return true
	}
	put := e.Operation() == jetstream.KeyValuePut
	if process, ok := strings.CutPrefix(e.Key(), v.keys.member("")); ok {
		if process == self {
			v.heard = time.Now()
		}
		if v.members[process] == put {
			return false
		}
		if put {
			v.members[process] = true
		} else {
			delete(v.members, process)
		}
		return v.whole
	}
	partition, err := strconv.Atoi(strings.TrimPrefix(e.Key(), v.keys.leases()))
	if err != nil || partition < 0 || partition >= len(v.held) {
		return false
	}
	now := holding{revision: e.Revision()}
	if put {
		now.process = string(e.Value())
	}
	return v.know(partition, now) && v.whole
}

// know records the holder of a partition unless a newer one is known, and reports whether
// the holder has changed.
func (v *view) know(partition int, now holding) bool {
	before := v.held[partition]
	if now.revision < before.revision {
		return false
	}
	v.held[partition] = now
	return now.process != before.process
}

// owners returns which process each partition belongs to.
func (v *view) owners() []string {
	held := make([]string, len(v.held))
	for partition, h := range v.held {
		held[partition] = h.process
	}
	return assign(slices.Collect(maps.Keys(v.members)), held)
}

// keys makes the names of one build's keys in the bucket.
type keys struct{ Build }

// member returns the key that shows that a process exists.
func (k keys) member(process string) string { return "member." + k.names() + process }

// leases returns the prefix of the keys of the partitions' leases.
func (k keys) leases() string { return "lease." + k.names() }

func (k keys) lease(partition int) string { return k.leases() + strconv.Itoa(partition) }
