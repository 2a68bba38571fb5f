package natsdeploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"mneme.dev/mneme/events"
)

// Info is what a program needs to know about the stream.
type Info struct {
	Partitions int
	Splits     []Split // of the partitions, oldest first
	Replicas   int
	Messages   uint64 // events in the stream
	FirstSeq   uint64 // sequence of the oldest event; above 1 after an erasure from the front
	Head       uint64 // sequence of the newest event ever stored, 0 for an empty stream
	Missing    uint64 // events lost without a record, see [Missing]
	Bytes      uint64 // bytes of the stored events, at most MaxBytes
	MaxBytes   int64
	Created    bool // this call created the stream
}

// Apply makes sure that the stream exists with these settings. It creates a
// missing stream, reads back the server's definition, and compares every setting
// but the size, the copies, and the partitions, which are the log's own and can have changed.
// It can be called at any time, by any number of programs at once.
//
// It returns an [*IncompatibleError] if the stream exists with other settings,
// and never changes it; [ErrIncompatible] if another stream has its subjects; [ErrNoSpace] if the server's store limit has no room for a
// new one; [ErrSplitting]; [ErrRestoring]. On an embedded server use embedded.Server.Apply.
func Apply(ctx context.Context, js jetstream.JetStream, s Settings) (Info, error) {
	if err := s.check(); err != nil {
		return Info{}, err
	}
	stream, err := js.Stream(ctx, Stream)
	created := false
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if s.Replicas == 0 && js.Conn().ConnectedClusterName() != "" {
			s.Replicas = ClusterReplicas
		}
		stream, err = js.CreateStream(ctx, StreamConfig(s))
		created = err == nil
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // by another program, just now
			stream, err = js.Stream(ctx, Stream)
		}
	}
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == codeStorageExceeded {
		return Info{}, fmt.Errorf("%w: the server has no room for a log of %d bytes: make it smaller with MNEME_LOG_SIZE, or raise max_file_store of NATS", ErrNoSpace, StreamConfig(s).MaxBytes)
	}
	if errors.As(err, &api) && api.ErrorCode == codeNoPeers {
		return Info{}, fmt.Errorf("stream %s: the cluster does not have %d servers with room for a copy of %d bytes each: start the servers that are down, make the log smaller with MNEME_LOG_SIZE, or ask for fewer copies with MNEME_REPLICAS: %w",
			Stream, s.Replicas, StreamConfig(s).MaxBytes, err)
	}
	if errors.As(err, &api) && api.ErrorCode == codeSubjectsTaken {
		other, _ := js.StreamNameBySubject(ctx, events.PublishFilter) // a user may not be allowed to ask
		return Info{}, takenBy(cmp.Or(other, "nats stream ls shows which"))
	}
	if err != nil {
		return Info{}, fmt.Errorf("stream %s: %w", Stream, err)
	}
	got, err := stream.Info(ctx)
	if err != nil {
		return Info{}, fmt.Errorf("stream %s: %w", Stream, err)
	}
	info, err := describe(got, s)
	info.Created = created
	return info, err
}

// Taken returns an [ErrIncompatible] that names the other stream, if one has subjects of the log, which therefore cannot be
// created. Only a user that may list streams learns of it.
func Taken(ctx context.Context, js jetstream.JetStream) error {
	other, err := js.StreamNameBySubject(ctx, events.PublishFilter)
	if err != nil || other == Stream {
		return nil
	}
	return takenBy(other)
}

func takenBy(other string) error {
	return fmt.Errorf("%w: stream %s cannot be created, because another stream of this NATS account stores events too: %s. If it is a copy of the log, run `mneme backup create` where the log came from, remove the stream with `nats stream rm`, and run `mneme restore`; otherwise use another account",
		ErrIncompatible, Stream, other)
}

// Inspect is for programs that must not create the stream: it accepts any
// partitions, replicas, size and duplicate window, and checks the rest.
//
// It returns [ErrNoStream] if the stream does not exist, and an
// [*IncompatibleError] if mneme did not make it, or somebody has changed it; of the latter it still says what is missing.
func Inspect(ctx context.Context, js jetstream.JetStream) (Info, error) {
	stream, err := js.Stream(ctx, Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return Info{}, ErrNoStream
	}
	if err != nil {
		return Info{}, fmt.Errorf("stream %s: %w", Stream, err)
	}
	got, err := stream.Info(ctx)
	if err != nil {
		return Info{}, fmt.Errorf("stream %s: %w", Stream, err)
	}
	return inspect(got)
}

// Changed returns an [*IncompatibleError] if somebody has changed a setting of the stream that mneme needs. Programs that
// run do not notice, but the stream may lose events.
func Changed(got *jetstream.StreamInfo) error {
	if _, err := inspect(got); errors.Is(err, ErrIncompatible) {
		return err
	}
	return nil
}

func inspect(got *jetstream.StreamInfo) (Info, error) {
	return describe(got, Settings{})
}

// check refuses values that the server would refuse or, worse, accept.
func (s Settings) check() error {
	if s.Partitions < 0 || s.Partitions > MaxPartitions {
		return fmt.Errorf("%d partitions: at least 1, at most %d", s.Partitions, MaxPartitions)
	}
	if s.MaxBytes < 0 {
		return fmt.Errorf("a stream of %d bytes: the size must be positive, or 0 for the default", s.MaxBytes)
	}
	return nil
}

// describe returns what a program needs to know about a stream, if the stream has these settings.
// With [ErrSplitting] it returns the number of partitions, and with an [*IncompatibleError] about a stream that mneme made,
// what is missing, because the other settings may have removed it.
func describe(got *jetstream.StreamInfo, s Settings) (Info, error) {
	n, ok := partitions(got.Config)
	if ok { // a transform of another shape fails in compare
		s.Partitions = n
	}
	if err := compare(got.Config, s); err != nil {
		info := Info{}
		if _, ours := got.Config.Metadata[schemaKey]; ours {
			info.Missing = Missing(got)
		}
		return info, err
	}
	list, open, err := splits(got.Config)
	if err != nil {
		return Info{}, err
	}
	if open != 0 {
		return Info{Partitions: n}, splitting(n)
	}
	return Info{
		Partitions: n,
		Splits:     list,
		Replicas:   got.Config.Replicas,
		Messages:   got.State.Msgs,
		FirstSeq:   got.State.FirstSeq,
		Head:       got.State.LastSeq,
		Missing:    Missing(got),
		Bytes:      got.State.Bytes,
		MaxBytes:   got.Config.MaxBytes,
	}, nil
}
