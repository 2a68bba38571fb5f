package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
)

// Get reads the event at a sequence; it takes about 0.1 ms. It returns [ErrNotFound] if there is
// none.
func (l *Log) Get(ctx context.Context, seq uint64) (Message, error) {
	if seq == 0 { // which the server would take for an empty request
		return Message{}, fmt.Errorf("sequence 0: %w", ErrNotFound)
	}
	m, err := l.get(ctx, getRequest{Seq: seq})
	if err != nil {
		return Message{}, fmt.Errorf("get sequence %d: %w", seq, err)
	}
	return m, nil
}

// Last returns the sequence of the newest message of a conversation, valid or not (0 if it has none), and the
// conversation's partition, even if it has no message. A read model that has applied that sequence in that partition
// has applied all of the conversation. It returns [ErrPartitions] if the message is in a partition that the log did not
// have when it was opened.
func (l *Log) Last(ctx context.Context, tenant, conversation string) (seq uint64, partition int, err error) {
	partition = l.PartitionOf(tenant, conversation)
	m, err := l.get(ctx, getRequest{LastFor: events.ConversationFilter(tenant, conversation)})
	if errors.Is(err, ErrNotFound) {
		return 0, partition, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("last event of conversation %q: %w", conversation, err)
	}
	// Read only the partition from the subject: anyone can publish a subject whose kind can't be read.
	if n, ok := events.StoredPartition(m.Subject); ok && n >= l.had.Partitions {
		return 0, 0, l.isOutdated()
	}
	return m.Seq, partition, nil
}

// LastOfKind reads the newest event of a conversation with this kind (see [events.Kind]). It
// returns [ErrNotFound] if there is none.
func (l *Log) LastOfKind(ctx context.Context, tenant, conversation, kind string) (Message, error) {
	m, err := l.get(ctx, getRequest{LastFor: events.KindFilter(tenant, conversation, kind)})
	if err != nil {
		return Message{}, fmt.Errorf("last %s of conversation %q: %w", kind, conversation, err)
	}
	return m, nil
}

// NextOfKind reads the oldest event of a conversation with this kind at or after a sequence; it
// takes about as long as [Log.Get], because the server knows where each subject is. It returns
// [ErrNotFound] if there is none.
func (l *Log) NextOfKind(ctx context.Context, tenant, conversation, kind string, fromSeq uint64) (Message, error) {
	m, err := l.next(ctx, []string{events.KindFilter(tenant, conversation, kind)}, fromSeq)
	if err != nil {
		return Message{}, fmt.Errorf("next %s of conversation %q: %w", kind, conversation, err)
	}
	return m, nil
}

// LastOf returns the sequence of the newest event of a partition, 0 if it has none.
func (l *Log) LastOf(ctx context.Context, partition int) (uint64, error) {
	m, err := l.get(ctx, getRequest{LastFor: events.PartitionFilter(partition)})
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("last event of partition %d: %w", partition, err)
	}
	return m.Seq, nil
}

// NextOf returns the sequence of the first event of a partition at or after a sequence, 0 if there is
// none.
func (l *Log) NextOf(ctx context.Context, partition int, fromSeq uint64) (uint64, error) {
	m, err := l.next(ctx, []string{events.PartitionFilter(partition)}, fromSeq)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("next event of partition %d: %w", partition, err)
	}
	return m.Seq, nil
}

// next reads the first message at or after a sequence that matches one of the filters; no filter
// matches everything. It returns [ErrNotFound] if there is none.
func (l *Log) next(ctx context.Context, filters []string, fromSeq uint64) (first Message, err error) {
	if len(filters) == 0 {
		filters = []string{">"}
	}
	for _, filter := range filters {
		m, err := l.get(ctx, getRequest{Seq: max(fromSeq, 1), NextFor: filter})
		if err != nil && !errors.Is(err, ErrNotFound) {
			return Message{}, err
		}
		if err == nil && (first.Seq == 0 || m.Seq < first.Seq) {
			first = m
		}
	}
	if first.Seq == 0 {
		return first, ErrNotFound
	}
	return first, nil
}

type getRequest struct {
	Seq     uint64 `json:"seq,omitempty"`
	LastFor string `json:"last_by_subj,omitempty"`
	NextFor string `json:"next_by_subj,omitempty"`
}

type getResponse struct {
	Error   *jetstream.APIError `json:"error"`
	Message *struct {
		Subject string    `json:"subject"`
		Seq     uint64    `json:"seq"`
		Header  []byte    `json:"hdrs"`
		Data    []byte    `json:"data"`
		Time    time.Time `json:"time"`
	} `json:"message"`
}

// get reads one message in the JSON form of the API. A direct get and a consumer deliver a message
// as it is, and the client would mistake one that looks like its protocol (see [Message.control])
// for an answer of the server.
func (l *Log) get(ctx context.Context, request getRequest) (Message, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return Message{}, err
	}
	reply, err := hedge(ctx, firstHedge, func(ctx context.Context) (*nats.Msg, error) {
		return l.conn.RequestWithContext(ctx, jetstream.DefaultAPIPrefix+"STREAM.MSG.GET."+natsdeploy.Stream, body)
	})
	if err != nil {
		return Message{}, err
	}
	var response getResponse
	if err := json.Unmarshal(reply.Data, &response); err != nil {
		return Message{}, fmt.Errorf("the server's answer: %w", err)
	}
	switch {
	case response.Error != nil && response.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return Message{}, ErrNotFound
	case response.Error != nil:
		return Message{}, named(response.Error)
	case response.Message == nil:
		return Message{}, errors.New("the server's answer holds no message")
	}
	stored := response.Message
	m := Message{Seq: stored.Seq, Subject: stored.Subject, Data: stored.Data, Stored: stored.Time}
	if len(stored.Header) > 0 {
		// Headers that can't be decoded count as missing, as with a consumer.
		m.Header, _ = nats.DecodeHeadersMsg(stored.Header)
	}
	return m, nil
}

// control reports whether the client mistakes the message for its own protocol, such as a
// heartbeat, if it is delivered as it is. No event is such a message, but anyone who may publish
// can store one.
func (m *Message) control() bool { return len(m.Data) == 0 && m.Header.Get("Status") != "" }

// CountAfter counts the events of a partition with a sequence above seq.
func (l *Log) CountAfter(ctx context.Context, partition int, seq uint64) (uint64, error) {
	last, err := l.LastOf(ctx, partition)
	if err != nil || last <= seq {
		return 0, err
	}
	n, err := l.countFrom(ctx, []string{events.PartitionFilter(partition)}, seq+1)
	if err != nil {
		return 0, fmt.Errorf("count the events of partition %d: %w", partition, err)
	}
	return n, nil
}

// countFrom counts the messages at or after a sequence that match one of the filters. The sequence
// must not be beyond the end of the log.
func (l *Log) countFrom(ctx context.Context, filters []string, seq uint64) (uint64, error) {
	config := jetstream.ConsumerConfig{
		FilterSubjects:    filters,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       seq,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: inactiveThreshold,
		MemoryStorage:     true,
		Replicas:          1,
	}
	consumer, err := ask(ctx, func(ctx context.Context) (jetstream.Consumer, error) { return l.stream.CreateConsumer(ctx, config) })
	if err != nil {
		return 0, err
	}
	info := consumer.CachedInfo()
	l.deleteConsumer(info.Name)
	return info.NumPending, nil
}

// The server drops consumers that were not deleted after this time.
const inactiveThreshold = 15 * time.Second

// deleteTimeout limits an attempt to delete a consumer. The server drops it later anyway.
const deleteTimeout = 2 * time.Second

func (l *Log) deleteConsumer(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()
	_ = l.stream.DeleteConsumer(ctx, name)
}
