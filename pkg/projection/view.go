package projection

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// view is what a watch of the bucket has told: who is there, and who holds what.
type view struct {
	keys    keys
	watcher jetstream.KeyWatcher
	cancel  context.CancelFunc
	whole   bool // all that there was when the watch began has come
	members map[string]bool
	held    []holding
	heard   time.Time // when the watch began, or last told of this process itself
}

// holding is the last that is known of a partition's lease.
type holding struct {
	process  string // "" if nobody holds it
	revision uint64
}

// watch begins a view. Patience is how long the server may take.
func watch(bucket jetstream.KeyValue, patience time.Duration, k keys, partitions int) (*view, error) {
	ctx, cancel := context.WithCancel(context.Background()) // the watch ends with it
	late := time.AfterFunc(patience, cancel)
	watcher, err := bucket.WatchFiltered(ctx, []string{k.member("*"), k.leases() + "*"})
	if !late.Stop() {
		err = errors.Join(err, errNoAnswer)
	}
	if err != nil {
		cancel()
		if watcher != nil { // it came too late
			go drain(watcher)
		}
		return nil, fmt.Errorf("watch the leases: %w", err)
	}
	return &view{keys: k, watcher: watcher, cancel: cancel, members: map[string]bool{}, held: make([]holding, partitions), heard: time.Now()}, nil
}

// errNoAnswer says that the server has not answered in time.
var errNoAnswer = errors.New("the server does not answer")

// end stops the watch.
func (v *view) end() {
	v.cancel()
	go drain(v.watcher)
}

// drain takes what a watch that was stopped still has to say, or a goroutine of the
// client waits for ever.
func drain(watcher jetstream.KeyWatcher) {
	for range watcher.Updates() {
	}
}

// see takes in one update, and tells whether it changes who should do what.
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

// know takes in who holds a partition, unless something newer is known, and tells
// whether that is news.
func (v *view) know(partition int, now holding) bool {
	before := v.held[partition]
	if now.revision < before.revision {
		return false
	}
	v.held[partition] = now
	return now.process != before.process
}

// owners says which process each partition belongs to.
func (v *view) owners() []string {
	members := make([]string, 0, len(v.members))
	for member := range v.members {
		members = append(members, member)
	}
	held := make([]string, len(v.held))
	for partition, h := range v.held {
		held[partition] = h.process
	}
	return assign(members, held)
}

// keys are the names of one build's keys in the bucket.
type keys struct{ Build }

// member is the key by which a process says that it is there.
func (k keys) member(process string) string { return "member." + k.names() + process }

// leases begins the keys of the partitions' leases.
func (k keys) leases() string { return "lease." + k.names() }

func (k keys) lease(partition int) string { return k.leases() + strconv.Itoa(partition) }
