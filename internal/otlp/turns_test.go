package otlp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// held is a receiver that records nothing of the tenant slow before release is called. waits says when it has begun.
func held(t *testing.T) (r *Receiver, waits chan struct{}, release func()) {
	t.Helper()
	r = receiver(t, func() error { return nil })
	waits, gate := make(chan struct{}, 100), make(chan struct{})
	r.Admit = func(tenant string, _, _ int) (func(), error) {
		if tenant == "slow" {
			waits <- struct{}{}
			<-gate
		}
		return func() {}, nil
	}
	release = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release)
	return r, waits, release
}

func post(t *testing.T, url, tenant, body string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/traces", strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(TenantHeader, tenant)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

func TestATenantWhoseRequestsAreSlowDelaysNoOther(t *testing.T) {
	t.Parallel()
	r, waits, release := held(t)
	server := httptest.NewServer((&Server{Receiver: r}).Handler())
	t.Cleanup(server.Close)
	var slow sync.WaitGroup
	codes := make(chan int, 2*maxAtOnce)
	for range cap(codes) {
		slow.Go(func() { codes <- post(t, server.URL, "slow", chatSpan) })
	}
	<-waits
	for range 3 {
		require.Equal(t, http.StatusOK, post(t, server.URL, "other", chatSpan))
	}
	require.EqualValues(t, 1, r.Status().Recorded, "what the other tenant sent")
	require.Empty(t, waits, "the requests of one tenant are recorded one after the other")
	release()
	slow.Wait()
	require.EqualValues(t, 2, r.Status().Recorded)
}
