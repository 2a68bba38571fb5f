package natsdeploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"mneme.dev/mneme/events"
)

// splitsKey holds the splits of the log's partitions, in the stream's metadata, so that a backup of
// the log includes them: "8:1200,16:90000" is two splits, and "8:" one that is not finished.
const splitsKey = "mneme.splits"

// splitSchema is the schema of a log that was split. Programs that do not know splits refuse it: they would apply
// events that follow a split before events that precede it.
const splitSchema = "2"

// A Split is a change of the log to a multiple of its partitions. Messages up to UpTo are in the old partitions, later
// ones in the new ones. A conversation's events are in one partition before a split and in one after it.
type Split struct {
	From int    // number of partitions before
	UpTo uint64 // the last sequence before any new partition began
}

// MoreError says why the log can't have a number of partitions.
type MoreError struct{ From, To int }

func (e *MoreError) Error() string {
	fit := fmt.Sprintf("2 to %d", MaxPartitions)
	if e.From > 1 {
		fit = ""
		for n := 2 * e.From; n <= MaxPartitions; n += e.From {
			fit += fmt.Sprintf(", %d", n)
		}
		fit = strings.TrimPrefix(fit, ", ")
	}
	why := fmt.Sprintf("the number of partitions is %d and cannot become %d: it can only grow, to a multiple of what it is, so that each new partition continues one old one", e.From, e.To)
	if fit == "" {
		return fmt.Sprintf("%s; %d is the most", why, MaxPartitions)
	}
	return why + "; choose " + fit
}

// ErrReplicated means that a log with several copies can't be split.
var ErrReplicated = errors.New("each server of a cluster sorts events into partitions by itself, so the copies of the log could differ after a split")

// ErrSplitting means that a split of the log began and did not end.
var ErrSplitting = errors.New("a change of the log's partitions was interrupted")

// splitting returns [ErrSplitting] with the command that ends the split.
func splitting(partitions int) error {
	return fmt.Errorf("%w: run mneme partitions %d", ErrSplitting, partitions)
}

// splits reads the splits of a log, oldest first. open is the number of partitions before a split
// that is not finished, 0 if there is none.
func splits(config jetstream.StreamConfig) (list []Split, open int, err error) {
	recorded := config.Metadata[splitsKey]
	if recorded == "" {
		return nil, 0, nil
	}
	entries := strings.Split(recorded, ",")
	for i, entry := range entries {
		digits, seq, _ := strings.Cut(entry, ":")
		from, err := strconv.Atoi(digits)
		last := i == len(entries)-1
		if err == nil && seq == "" && last {
			return list, from, nil
		}
		upTo, err2 := strconv.ParseUint(seq, 10, 64)
		if errors.Join(err, err2) != nil || from < 1 {
			return nil, 0, &IncompatibleError{Field: splitsKey, Have: strconv.Quote(recorded), Want: `such as "8:1200"`}
		}
		list = append(list, Split{from, upTo})
	}
	return list, 0, nil
}

// MaySplit returns a [*MoreError] or [ErrReplicated] if a log can't be given this many partitions.
func MaySplit(log Info, to int) error {
	if to < log.Partitions || to%log.Partitions != 0 || to > MaxPartitions {
		return &MoreError{log.Partitions, to}
	}
	if log.Replicas > 1 {
		return ErrReplicated
	}
	return nil
}

// BeginSplit makes the server sort new events into this many partitions. It notes in the same update
// that a split has begun, so from then on programs refuse the log with [ErrSplitting] until
// [EndSplit]. It does nothing if the log has that many partitions, even if that split is unfinished.
//
// It returns a [*MoreError], [ErrReplicated], [ErrRestoring], [ErrSplitting] if a split into another
// number is unfinished, [ErrNoStream], or an [*IncompatibleError].
func BeginSplit(ctx context.Context, js jetstream.JetStream, to int) error {
	config, from, open, err := splittable(ctx, js)
	switch {
	case err != nil || from == to:
		return err
	case open != 0:
		return splitting(from)
	}
	if err := MaySplit(Info{Partitions: from, Replicas: config.Replicas}, to); err != nil {
		return err
	}
	config.SubjectTransform = &jetstream.SubjectTransformConfig{Source: events.PublishFilter, Destination: events.StoredDestination(to)}
	before := config.Metadata[splitsKey]
	if before != "" {
		before += ","
	}
	return updateMetadata(ctx, js, config, map[string]string{schemaKey: splitSchema, splitsKey: before + strconv.Itoa(from) + ":"})
}

// EndSplit records where the new partitions begin: after upTo.
func EndSplit(ctx context.Context, js jetstream.JetStream, upTo uint64) error {
	config, _, open, err := splittable(ctx, js)
	if err != nil || open == 0 {
		return err
	}
	return updateMetadata(ctx, js, config, map[string]string{splitsKey: config.Metadata[splitsKey] + strconv.FormatUint(upTo, 10)})
}

// UnfinishedSplit returns the new partitions of a split that is not finished. Its errors are those of
// [BeginSplit].
func UnfinishedSplit(ctx context.Context, js jetstream.JetStream) (added []int, err error) {
	_, partitions, open, err := splittable(ctx, js)
	if err != nil || open == 0 {
		return nil, err
	}
	for n := open; n < partitions; n++ {
		added = append(added, n)
	}
	return added, nil
}

// splittable returns the configuration of the log, its partitions, and how many there were before a
// split that is not finished.
func splittable(ctx context.Context, js jetstream.JetStream) (config jetstream.StreamConfig, partitions, open int, err error) {
	stream, err := js.Stream(ctx, Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return config, 0, 0, ErrNoStream
	}
	if err != nil {
		return config, 0, 0, fmt.Errorf("stream %s: %w", Stream, err)
	}
	config = stream.CachedInfo().Config
	info, err := inspect(stream.CachedInfo())
	if err != nil && !errors.Is(err, ErrSplitting) {
		return config, 0, 0, err
	}
	_, open, err = splits(config)
	return config, info.Partitions, open, err
}

func updateMetadata(ctx context.Context, js jetstream.JetStream, config jetstream.StreamConfig, change map[string]string) error {
	config.Metadata = maps.Clone(config.Metadata)
	maps.Copy(config.Metadata, change)
	if _, err := js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("change the partitions of stream %s: %w", Stream, err)
	}
	return nil
}

// CheckSplits returns [ErrSplitting] if a split of the log is not finished.
func CheckSplits(config jetstream.StreamConfig) error {
	_, open, err := splits(config)
	if err == nil && open != 0 {
		n, _ := partitions(config)
		return splitting(n)
	}
	return err
}

// WasSplit reports whether a log has other partitions than it had, and no unfinished split.
func WasSplit(config jetstream.StreamConfig, had Info) bool {
	n, ok := partitions(config)
	list, open, err := splits(config)
	return err == nil && ok && open == 0 && (n != had.Partitions || !slices.Equal(list, had.Splits))
}
