package otlp

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/quota"
	"mneme.dev/mneme/pkg/eventlog"
)

const chatSpan = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0AF7651916cd43dd8448eb211c80319c","name":"chat","attributes":[
	{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.conversation.id","value":{"stringValue":"s"}},
	{"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"Which units?\"}]}]"}},
	{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"Metric.\"}]}]"}}]}]}]}]}`

func receiver(t *testing.T, admit func() error) *Receiver {
	t.Helper()
	_, conn := natstest.Alone(t, embedded.Config{}, natsdeploy.Settings{MaxBytes: 1 << 20})
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	r := New(t.Context(), Config{
		Log: log,
		Lookup: func(string) func(context.Context, []events.Event) ([]importer.Known, error) {
			return func(_ context.Context, list []events.Event) ([]importer.Known, error) {
				return make([]importer.Known, len(list)), nil
			}
		},
		Admit: func(string, int, int) (func(), error) { return func() {}, admit() },
	})
	t.Cleanup(r.Close)
	return r
}

func (r *Receiver) send(t *testing.T, body string) error {
	t.Helper()
	request := &coltracepb.ExportTraceServiceRequest{}
	require.NoError(t, decode([]byte(body), true, request))
	_, err := r.take(t.Context(), "default", traces, spansOf(request, true))
	return err
}

// The exporter sends it again, so nothing is lost, and nobody has to correct its settings.
func TestWhatALogThatDoesNotAnswerDelaysIsOverOnceItIsRecorded(t *testing.T) {
	t.Parallel()
	trouble := errors.New("the log does not answer")
	r := receiver(t, func() error { return trouble })
	require.ErrorIs(t, r.send(t, chatSpan), trouble)
	require.Equal(t, trouble.Error(), r.Status().Waits)
	require.Empty(t, r.Status().LastError)
	require.NoError(t, r.send(t, spanAsJSON))
	require.Equal(t, trouble.Error(), r.Status().Waits, "what is left out needs no log")
	trouble = nil
	require.NoError(t, r.send(t, chatSpan))
	require.Empty(t, r.Status().Waits)
	require.EqualValues(t, 1, r.Status().Recorded)
}

func TestWhatATenantMayNotStoreIsKeptAsTheLastError(t *testing.T) {
	t.Parallel()
	r := receiver(t, func() error { return &quota.FullError{} })
	require.Error(t, r.send(t, chatSpan))
	require.NotEmpty(t, r.Status().LastError)
	require.Empty(t, r.Status().Waits)
}
