package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// heldModels verify until they are let go.
type heldModels struct {
	httpapi.Models
	verifying, letGo chan struct{}
}

func (m heldModels) Verify(ctx context.Context, log *eventlog.Log, progress func(string, uint64, uint64)) ([]projection.Verification, error) {
	close(m.verifying)
	<-m.letGo
	return m.Models.Verify(ctx, log, progress)
}

// A verification of a long log takes hours, and whoever wants to rebuild then has to know what to wait for.
func TestWhoeverHasToWaitForAVerificationIsToldSo(t *testing.T) {
	mnemetest.Long(t)
	held := heldModels{verifying: make(chan struct{}), letGo: make(chan struct{})}
	f := setupFront(t, func(c *httpapi.Config) {
		held.Models = c.Models
		c.Models = held
	})
	verified := make(chan int)
	go func() {
		response, err := http.Post(f.HTTPURL()+"/v1/verify", "application/json", nil)
		if err == nil {
			_ = response.Body.Close()
			verified <- response.StatusCode
		}
		close(verified)
	}()
	select {
	case <-held.verifying:
	case <-verified:
		t.Fatal("nothing was verified")
	}
	response, err := http.Post(f.HTTPURL()+"/v1/verify/stream", "application/json", nil) // it waits 10 s for its place
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	var p problem
	require.NoError(t, json.NewDecoder(response.Body).Decode(&p))
	require.Equal(t, http.StatusServiceUnavailable, p.Status)
	require.Contains(t, p.Detail, "mneme verify")
	require.NotEmpty(t, response.Header.Get("Retry-After"))
	close(held.letGo)
	require.Equal(t, http.StatusOK, <-verified)
}
