package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhoPublishesToADeletedConversationIsTold(t *testing.T) {
	b := setup(t)
	type answer struct {
		Seq     uint64
		Deleted []struct {
			Conversation string
			Seq          uint64
		}
	}
	publish := func(conversation, id string) (a answer) {
		b.do(http.StatusCreated, http.MethodPost, "/v1/events", map[string]string{"Content-Type": "application/cloudevents+json"}, structured(conversation, id, message(id, "user", "Hello")), &a)
		return a
	}
	require.Empty(t, publish("other", "m1").Deleted)
	created := publish("gone", "m1")
	require.Empty(t, created.Deleted)
	b.do(http.StatusOK, http.MethodDelete, "/v1/conversations/gone", nil, nil, nil)
	late := publish("gone", "m2")
	require.Len(t, late.Deleted, 1)
	require.Equal(t, "gone", late.Deleted[0].Conversation)
	require.Greater(t, late.Deleted[0].Seq, created.Seq)
	require.Less(t, late.Deleted[0].Seq, late.Seq)
	require.Empty(t, publish("other", "m2").Deleted)

	deletion := `{"specversion":"1.0","type":"dev.mneme.conversation.deleted.v1","source":"test","id":"d","subject":"other","data":{}}`
	b.do(http.StatusCreated, http.MethodPost, "/v1/events", map[string]string{"Content-Type": "application/cloudevents+json"}, []byte(deletion), nil)
	require.Len(t, publish("other", "m3").Deleted, 1, "deleted by an event")
}
