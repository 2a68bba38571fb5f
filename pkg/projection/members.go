package projection

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// Member is the value of a process's key in the bucket of leases, updated at each renewal.
// If the value is empty or unreadable, only Process is known.
type Member struct {
	Process    string    `json:"-"`
	Program    string    `json:"program,omitempty"`
	Version    string    `json:"version,omitempty"`
	Started    time.Time `json:"started,omitzero"`
	Partitions []Driven  `json:"partitions,omitempty"`
}

// Driven is the part of a [Member] about a partition that the process drives or is halted
// on.
type Driven struct {
	Build
	Partition int     `json:"partition"`
	State     State   `json:"state"`
	Seq       uint64  `json:"seq"` // last sequence applied
	Lag       uint64  `json:"lag"`
	Rate      float64 `json:"rate"` // events per second over the last seconds
	Retries   uint64  `json:"retries,omitempty"`
	Error     string  `json:"error,omitempty"`
}

// Member returns what this process publishes about itself and its projectors.
func (l *Leases) Member(statuses []Status) Member {
	m := l.about
	for _, s := range statuses {
		if s.State == StateIdle {
			continue
		}
		m.Partitions = append(m.Partitions, Driven{
			Build: s.Build, Partition: s.Partition, State: s.State,
			Seq: s.Checkpoint.Seq, Lag: s.Lag, Rate: s.Rate, Retries: s.Retries, Error: short(s.Error),
		})
	}
	return m
}

func (m Member) encode() []byte {
	raw, err := json.Marshal(m)
	if err != nil { // only a NaN or an infinity can cause this
		return []byte("{}")
	}
	return raw
}

// processKey begins the keys of processes that take no leases. Projectors ignore them.
const processKey = "process."

// Announce lists a process that takes no leases in [ReadCluster] until stop is called.
// statuses returns the statuses of its projectors and may be nil. While the server is down,
// Announce retries.
func (l *Leases) Announce(statuses func() []Status, logger *slog.Logger) (stop func()) {
	about := func() []byte {
		if statuses == nil {
			return l.about.encode()
		}
		return l.Member(statuses()).encode()
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var known trouble
		for ctx.Err() == nil {
			if err := l.announce(ctx, about); err != nil && known.isNews(err) {
				logger.Warn("this process is not listed in mneme status; retrying", "error", err)
			}
			rest(ctx, nil, maxAbsence)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// announce keeps the key until ctx ends or the key is lost.
func (l *Leases) announce(ctx context.Context, about func() []byte) error {
	bucket, ttl, err := natsdeploy.ApplyLeases(ctx, l.js, l.ttl)
	if err != nil {
		return err
	}
	self, err := take(bucket, ttl, processKey+l.process, about)
	if err != nil {
		return err
	}
	defer self.release()
	select {
	case <-self.valid.Done():
		return context.Cause(self.valid)
	case <-ctx.Done():
		return nil
	}
}

// Cluster lists the processes that work with one log, and the leases they hold.
type Cluster struct {
	Members []Member // by name
	Leases  []Lease
}

// Lease says which process holds the lease of a partition.
type Lease struct {
	Build
	Partition int
	Process   string
}

// clusterPatience limits how long the bucket of leases may take to answer.
const clusterPatience = 2 * time.Second

// ReadCluster reads the bucket of leases. The result is empty if no process ever took one.
func ReadCluster(ctx context.Context, conn *nats.Conn) (Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	c, err := readCluster(ctx, conn)
	if err != nil {
		return Cluster{}, fmt.Errorf("read the bucket of leases: %w", err)
	}
	return c, nil
}

func readCluster(ctx context.Context, conn *nats.Conn) (c Cluster, err error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return c, err
	}
	bucket, err := js.KeyValue(ctx, natsdeploy.LeaseBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	values, err := snapshot(ctx, js, bucket)
	if err != nil {
		return c, err
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		c.add(key, values[key])
	}
	slices.SortFunc(c.Members, func(a, b Member) int { return cmp.Compare(a.Process, b.Process) })
	return c, nil
}

// snapshot returns the values of all keys that exist throughout the call. A watch alone is
// not enough: a key renewed during the call may come twice, or only after the watch says
// that it has sent everything.
func snapshot(ctx context.Context, js jetstream.JetStream, bucket jetstream.KeyValue) (map[string][]byte, error) {
	prefix := "$KV." + bucket.Bucket() + "."
	stream, err := js.Stream(ctx, "KV_"+bucket.Bucket())
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return nil, err
	}
	told, err := tell(ctx, bucket)
	if err != nil {
		return nil, err
	}
	for subject := range info.State.Subjects {
		key := strings.TrimPrefix(subject, prefix)
		if _, ok := told[key]; ok {
			continue
		}
		e, err := bucket.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		told[key] = e
	}
	values := make(map[string][]byte, len(told))
	for key, e := range told {
		if e.Operation() == jetstream.KeyValuePut {
			values[key] = e.Value()
		}
	}
	return values, nil
}

// tell returns the last entry that a watch sends for each key before it says that it has
// sent everything.
func tell(ctx context.Context, bucket jetstream.KeyValue) (map[string]jetstream.KeyValueEntry, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watcher, err := bucket.WatchAll(ctx)
	if err != nil {
		return nil, err
	}
	defer natsdeploy.Drain(watcher)
	told := map[string]jetstream.KeyValueEntry{}
	for {
		select {
		case e, ok := <-watcher.Updates():
			if !ok {
				return nil, errNoAnswer
			}
			if e == nil {
				return told, nil
			}
			told[e.Key()] = e
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// add adds a key of the bucket. It ignores keys that it can't read, which are of another
// version.
func (c *Cluster) add(key string, value []byte) {
	kind, rest, _ := strings.Cut(key, ".")
	if kind == "process" {
		c.join(memberOf(rest, value))
		return
	}
	parts := strings.Split(rest, ".")
	if len(parts) != 4 {
		return
	}
	generation, err := strconv.Atoi(parts[2])
	if err != nil {
		return
	}
	switch kind {
	case "member":
		c.join(memberOf(parts[3], value))
	case "lease":
		if partition, err := strconv.Atoi(parts[3]); err == nil {
			c.Leases = append(c.Leases, Lease{Build: Build{parts[0], parts[1], generation}, Partition: partition, Process: string(value)})
		}
	}
}

// memberOf reads the value of a process's key. An older version stores only its name there.
func memberOf(process string, value []byte) Member {
	var m Member
	if json.Unmarshal(value, &m) != nil {
		m = Member{}
	}
	m.Process = process
	return m
}

// join adds a member. A process has one key for each of its projections.
func (c *Cluster) join(m Member) {
	at := slices.IndexFunc(c.Members, func(have Member) bool { return have.Process == m.Process })
	if at < 0 {
		c.Members = append(c.Members, m)
		return
	}
	have := &c.Members[at]
	m.Partitions = append(have.Partitions, m.Partitions...)
	if m.Program == "" {
		m.Program, m.Version, m.Started = have.Program, have.Version, have.Started
	}
	*have = m
}

// Add adds a process that is not in the bucket, or replaces its entry with a newer one.
func (c *Cluster) Add(m Member) {
	c.Members = slices.DeleteFunc(c.Members, func(have Member) bool { return have.Process == m.Process })
	c.Members = append(c.Members, m)
	slices.SortFunc(c.Members, func(a, b Member) int { return cmp.Compare(a.Process, b.Process) })
}

// Holder returns the process that holds the lease of a partition, or drives it without one;
// "" if none is known.
func (c *Cluster) Holder(b Build, partition int) string {
	for _, l := range c.Leases {
		if l.Build == b && l.Partition == partition {
			return l.Process
		}
	}
	for _, m := range c.Members {
		for _, d := range m.Partitions {
			if d.Build == b && d.Partition == partition {
				return m.Process
			}
		}
	}
	return ""
}

// Statuses returns what the holders of a build's partitions report, for [Progress].
func (c *Cluster) Statuses(b Build) (list []Status) {
	for _, m := range c.Members {
		for _, d := range m.Partitions {
			if d.Build == b && c.Holder(b, d.Partition) == m.Process {
				list = append(list, Status{
					Build: b, Partition: d.Partition, State: d.State, Checkpoint: Checkpoint{Partition: d.Partition, Seq: d.Seq},
					Lag: d.Lag, Rate: d.Rate, Retries: d.Retries, Error: d.Error, Holder: m.Process,
				})
			}
		}
	}
	return list
}
