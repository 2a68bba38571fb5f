package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
)

// Nothing stops while somebody changes or deletes the log, so the status must tell.
func TestALogThatSomebodyChangedOrDeletedIsTold(t *testing.T) {
	b := setup(t)
	js, err := jetstream.New(b.Log.Conn())
	require.NoError(t, err)
	stream, err := js.Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	var status httpapi.Status
	b.do(http.StatusOK, http.MethodGet, "/v1/status", nil, nil, &status)
	require.Empty(t, status.Stream.Changed)

	config.MaxMsgs = 1_000_000
	_, err = js.UpdateStream(mnemetest.Context(t), config)
	require.NoError(t, err)
	b.do(http.StatusOK, http.MethodGet, "/v1/status", nil, nil, &status)
	require.Contains(t, status.Stream.Changed, "max_msgs is 1000000, this program wants -1: the server removes events because of it")

	require.NoError(t, js.DeleteStream(mnemetest.Context(t), natsdeploy.Stream))
	refused := b.refused(http.StatusServiceUnavailable, http.MethodGet, "/v1/status", nil, "")
	require.Contains(t, refused.Detail, "there is no stream AGENT_EVENTS")
	event := `{"specversion":"1.0","id":"1","source":"s","type":"dev.mneme.message.created.v1","subject":"c","data":{"message_id":"1","role":"user","content":"hi"}}`
	refused = b.refused(http.StatusServiceUnavailable, http.MethodPost, "/v1/events", map[string]string{"Content-Type": "application/cloudevents+json"}, event)
	require.Equal(t, "0 of 1 events were stored: the log is gone: there is no stream AGENT_EVENTS; mneme doctor says what to do", refused.Detail)
}
