package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/intake"
	"mneme.dev/mneme/pkg/eventlog"
)

// Limits of one request.
const (
	maxBatchBytes  = 64 << 20
	maxBatchEvents = 10_000
)

const (
	eventsPath = "/v1/events"
	lookupPath = "/v1/events/lookup"
)

type publishInput struct {
	TenantParam
	AsIs    bool `query:"as_is" doc:"publish the events as they are, such as those of another log: nothing is removed from them"`
	RawBody []byte

	header map[string][]string
}

// Resolve keeps the headers, because in binary mode they are the event's attributes.
func (in *publishInput) Resolve(ctx huma.Context) []error {
	in.header = map[string][]string{}
	ctx.EachHeader(func(name, value string) { in.header[name] = append(in.header[name], value) })
	return nil
}

type published struct {
	ID        string `json:"id" doc:"the event's id"`
	Seq       uint64 `json:"seq" doc:"its sequence in the log"`
	Duplicate bool   `json:"duplicate" doc:"the log has the event already; it was not stored again"`
}

type publishOutput struct {
	Body struct {
		Events []published `json:"events"`
		Seq    uint64      `json:"seq" doc:"the highest sequence: pass it as at_least to see these events"`
		// Deleted is best effort, see deletions.before.
		Deleted []deleted `json:"deleted,omitempty" doc:"conversations of these events that were deleted before: the log has the events, but every read model skips them and lists them as failed; begin a new conversation"`
	}
}

type lookupInput struct {
	TenantParam
	Body struct {
		Events []lookup `json:"events" maxItems:"10000" doc:"identities to look up"`
	}
}

type lookup struct {
	Conversation string `json:"conversation"`
	Source       string `json:"source"`
	ID           string `json:"id"`
}

type lookupOutput struct {
	Body struct {
		Events []known `json:"events" doc:"one for each requested identity, in the same order"`
	}
}

type known struct {
	Seq     uint64 `json:"seq" doc:"sequence of the event with this identity, 0 if none has been applied yet; if the conversation is deleted, the sequence of its deletion"`
	Content string `json:"content" doc:"fingerprint of the event's type and data; empty if the conversation is deleted"`
}

func (a *api) registerEvents(h huma.API) {
	publish := operation("publish-events", http.MethodPost, eventsPath, "Publish CloudEvents", "events", 400, 408, 409, 413, 415, 422, 503, 507)
	publish.Description = "One event in binary mode (ce-… headers) or structured mode (application/cloudevents+json), or a batch (application/cloudevents-batch+json). " +
		"The answer comes after the log has acknowledged everything. A batch with one bad event publishes nothing and lists the bad ones by index. " +
		"Up to 1,000 events of up to 16 MiB in total are stored all or none, if the log knew none of them before. The log may store a part of a larger batch and refuse the rest: the problem then says how many were stored, and the value of its error about the body lists them as an answer does. " +
		"Frames <mneme-context>, in which mneme shows something to agents, are removed from messages and results of tools; the event then has the extension mnemecontexts with the ids of what was removed. With as_is they stay. " +
		"Publishing the same events again is harmless. An event whose identity (tenant, conversation, source and id) the log holds with another type or other data is refused with 409, whose existing_seq is the sequence of the event that counts, " +
		"if that one was published in the last 30 seconds; otherwise the new one is stored, and listed as failed. " +
		"A batch with an event that the log knows is stored one event at a time, in order, up to the first that is refused."
	publish.SkipValidateBody = true // package events decodes it, with better error messages
	publish.MaxBodyBytes = maxBatchBytes
	publish.BodyReadTimeout = time.Minute
	publish.DefaultStatus = http.StatusCreated
	publish.RequestBody = &huma.RequestBody{Required: true}
	serve(a, h, publish, a.publish)
	// Set after registering, which would add that a raw body can be any bytes.
	publish.RequestBody.Content = map[string]*huma.MediaType{
		events.ContentTypeEvent: {Schema: eventSchema(h), Examples: singleExamples()},
		events.ContentTypeBatch: {Schema: &huma.Schema{Type: huma.TypeArray, Items: eventSchema(h), MaxItems: new(maxBatchEvents)}, Example: batchExample()},
		"application/json":      {Schema: &huma.Schema{Description: "binary mode: the data of the event; its attributes are ce-… headers"}},
	}

	find := operation("lookup-events", http.MethodPost, lookupPath, "Which of these events are known", "events", 400, 408, 413, 415, 422, 503)
	find.Description = "Answers from the read model, which may not have applied the newest events yet."
	find.MaxBodyBytes = 16 << 20
	find.BodyReadTimeout = time.Minute
	serve(a, h, find, a.lookup)

	a.registerEvent(h)
}

func (a *api) publish(ctx context.Context, in *publishInput) (*publishOutput, error) {
	list, err := decodeBody(in.header, in.RawBody)
	if err != nil {
		a.Telemetry.Metrics.Refused("invalid", refused(err))
		return nil, err
	}
	out := &publishOutput{}
	out.Body.Events = []published{}
	if len(list) == 0 {
		return out, nil
	}
	if err := a.take(ctx, in.Tenant, list...); err != nil {
		return nil, err
	}
	if !in.AsIs {
		strip(list)
	}
	acks, err := a.Log.PublishValid(ctx, in.Tenant, list)
	if err != nil {
		return nil, a.partly(err, acknowledged(list, acks), len(list))
	}
	out.Body.Events = acknowledged(list, acks)
	for _, ack := range acks {
		out.Body.Seq = max(out.Body.Seq, ack.Seq)
	}
	out.Body.Deleted = a.deletions.before(ctx, a.Log, in.Tenant, list, acks)
	return out, nil
}

// acknowledged returns what the answer says about the events that the log has acknowledged, the first ones of the list.
func acknowledged(list []events.Event, acks []eventlog.Ack) []published {
	stored := make([]published, len(acks))
	for i, ack := range acks {
		stored[i] = published{ID: list[i].ID, Seq: ack.Seq, Duplicate: ack.Duplicate}
	}
	return stored
}

// strip removes from events what mneme itself has shown to an agent. The events, which are valid, stay valid.
func strip(list []events.Event) {
	var cleaner intake.Cleaner
	for i := range list {
		if clean, changed, err := cleaner.Clean(list[i]); err == nil && changed {
			list[i] = clean
		}
	}
}

// takenBy returns the problem for an event whose identity another event has, or nil if err
// is a different error. index is the event's position in the request.
func takenBy(err error, index, asked int) error {
	var other *eventlog.OtherContentError
	if !errors.As(err, &other) {
		return nil
	}
	location := "body"
	if asked > 1 {
		location = indexed(index)
	}
	return conflicting(other.Seq, other.Error(), &huma.ErrorDetail{Location: location + ".id", Message: "is the id of another event", Value: other.ID})
}

// refused returns the number of invalid events for which a body was refused.
func refused(err error) int {
	if problem, ok := errors.AsType[*huma.ErrorModel](err); ok {
		return max(1, len(problem.Errors))
	}
	return 1
}

// decodeBody decodes and checks all events of a request.
func decodeBody(header map[string][]string, body []byte) ([]events.Event, error) {
	contentType := strings.ToLower(strings.TrimSpace(strings.SplitN(strings.Join(header["Content-Type"], ","), ";", 2)[0]))
	if contentType != events.ContentTypeBatch {
		e, err := events.DecodeMessage(header, body)
		var invalid *events.Invalid
		if errors.As(err, &invalid) && invalid.Field == "content-type" {
			invalid.Reason += "; for several events in a JSON array, send " + events.ContentTypeBatch // which only HTTP knows
		}
		if err != nil {
			return nil, err
		}
		_, err = events.Record(e)
		return []events.Event{e}, err
	}
	raw, err := events.SplitBatch(body, maxBatchEvents)
	if err != nil {
		return nil, err
	}
	list := make([]events.Event, 0, len(raw))
	var bad []error
	for i, one := range raw {
		e, err := events.DecodeStructured(one)
		if err == nil {
			_, err = events.Record(e)
		}
		if invalid, ok := errors.AsType[*events.Invalid](err); ok {
			bad = append(bad, detail(invalid, indexed(i)))
			continue
		}
		list = append(list, e)
	}
	if len(bad) > 0 {
		return nil, huma.NewError(http.StatusUnprocessableEntity, "nothing was published: not all events are valid", bad...)
	}
	return list, nil
}

func (a *api) lookup(ctx context.Context, in *lookupInput) (*lookupOutput, error) {
	found, err := a.holders(ctx, in.Tenant, in.Body.Events)
	if err != nil {
		return nil, err
	}
	out := &lookupOutput{}
	out.Body.Events = found
	return out, nil
}

// holders returns what the read model knows under each identity, in order.
func (a *api) holders(ctx context.Context, tenant string, asked []lookup) ([]known, error) {
	list := make([]events.Event, len(asked))
	for i, l := range asked {
		list[i] = events.Event{Subject: l.Conversation, Source: l.Source, ID: l.ID}
	}
	held, err := importer.Lookup(tenant, a.Models.Graph)(ctx, list)
	if err != nil {
		return nil, err
	}
	found := make([]known, len(held))
	for i, h := range held {
		found[i] = known{Seq: h.Seq, Content: h.Content}
	}
	return found, nil
}
