package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// ErrPartitions means that the log has been given more partitions since it was opened. Open it again.
var ErrPartitions = errors.New("the log has other partitions than when this process opened it; the process must open it again")

// Split gives the log more partitions while it is in use, a multiple of what it has. It can be interrupted at any
// point: call it again with the same number. step, if not nil, is called before each step.
//
// No message moves and none is refused. In one update, the server begins to sort new messages into the new partitions;
// a second one records where they begin. Each new partition continues an old one, its parent. Its projector must wait
// until the parent's messages that precede the split are applied, see [Log.Parent].
//
// It needs permission to update the stream, and nobody else may change the stream's configuration at the same time. Its
// errors are those of [natsdeploy.BeginSplit].
func Split(ctx context.Context, conn *nats.Conn, partitions int, step func(string)) error {
	if step == nil {
		step = func(string) {}
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	step("sort new events into more partitions")
	if err := natsdeploy.BeginSplit(ctx, js, partitions); err != nil {
		return err
	}
	return endSplit(ctx, conn, js, step)
}

// EndSplit ends a split that was interrupted, if there is one.
func EndSplit(ctx context.Context, conn *nats.Conn) error {
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	err = endSplit(ctx, conn, js, func(string) {})
	if errors.Is(err, natsdeploy.ErrNoStream) {
		return nil
	}
	return err
}

func endSplit(ctx context.Context, conn *nats.Conn, js jetstream.JetStream, step func(string)) error {
	added, err := natsdeploy.UnfinishedSplit(ctx, js)
	if err != nil || len(added) == 0 {
		return err
	}
	step("find where the new partitions begin")
	stream, err := js.Stream(ctx, natsdeploy.Stream)
	if err != nil {
		return fmt.Errorf("stream %s: %w", natsdeploy.Stream, err)
	}
	// Read the head first: whatever the new partitions get later is above it.
	l := &Log{conn: conn, js: js, stream: stream}
	info, err := l.info(ctx)
	if err != nil {
		return err
	}
	upTo := info.State.LastSeq
	for _, partition := range added {
		first, err := l.NextOf(ctx, partition, 1)
		if err != nil {
			return err
		}
		if first > 0 {
			upTo = min(upTo, first-1)
		}
	}
	step("record where the new partitions begin")
	return natsdeploy.EndSplit(ctx, js, upTo)
}

// Parent returns the partition that a partition continues, and the last sequence that its
// conversations may have there. ok is false if the partition is as old as the log.
func (l *Log) Parent(partition int) (parent int, upTo uint64, ok bool) {
	for _, s := range slices.Backward(l.had.Splits) {
		if partition >= s.From {
			return partition % s.From, s.UpTo, true
		}
	}
	return 0, 0, false
}

// Families returns the partitions in groups: one that is as old as the log, followed by all that
// continue it. All events of a conversation are in one group, in the order of the group.
func (l *Log) Families() [][]int {
	families := make([][]int, l.oldest())
	for partition := range l.Partitions() {
		n := partition % len(families)
		families[n] = append(families[n], partition)
	}
	return families
}

// oldest returns how many partitions the log began with.
func (l *Log) oldest() int {
	if len(l.had.Splits) > 0 {
		return l.had.Splits[0].From
	}
	return l.had.Partitions
}

// checkEvery is how often [Log.AwaitSplit] asks for the partitions.
const checkEvery = time.Second

// AwaitSplit waits until the log has other partitions than when it was opened, and then returns [ErrPartitions]. It
// returns nil if ctx ends first. A process must then stop using the log and open it again. Until it does, it gives no
// wrong answers: every call that depends on the partitions returns ErrPartitions.
func (l *Log) AwaitSplit(ctx context.Context) error {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	noticed := l.outdated
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-noticed:
			noticed = nil
		case <-ticker.C:
		}
		// Ignore a server that does not answer. An unfinished split or restore must be finished first: a process that opens
		// the log again may restart the server on which it runs.
		if info, err := l.info(ctx); err == nil && !natsdeploy.IsRestoring(info.Config) && natsdeploy.WasSplit(info.Config, l.had) {
			return ErrPartitions
		}
	}
}

// current asks the server for the stream, and returns [ErrPartitions] if its partitions are not those
// that the log was opened with, or [natsdeploy.ErrSplitting].
func (l *Log) current(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := l.info(ctx)
	if err != nil {
		return nil, err
	}
	if err := natsdeploy.CheckSplits(info.Config); err != nil {
		return nil, err
	}
	if natsdeploy.WasSplit(info.Config, l.had) {
		return nil, l.isOutdated()
	}
	return info, nil
}

// isOutdated notes that the log has other partitions, and returns [ErrPartitions].
func (l *Log) isOutdated() error {
	l.noticed.Do(func() { close(l.outdated) })
	return ErrPartitions
}

// info asks the server for the stream.
func (l *Log) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := ask(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) { return l.stream.Info(ctx) })
	if err != nil {
		return nil, fmt.Errorf("state of the log: %w", err)
	}
	return info, nil
}
