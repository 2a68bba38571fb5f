package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
)

// hurried returns a client with short timeouts.
func hurried(url string) *client {
	c := newClient(url, "default")
	c.patience = patience{silence: 100 * time.Millisecond, probe: 100 * time.Millisecond, remind: time.Minute, away: time.Minute}
	return c
}

// mute starts a server that accepts connections and never answers.
func mute(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return "http://" + l.Addr().String()
}

// missing is the way to a server that is down.
type missing struct{}

func (missing) RoundTrip(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }

func TestASilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	err := hurried(mute(t)).get(t.Context(), "/v1/status", nil, nil)
	var away *awayError
	require.ErrorAs(t, err, &away)
	require.Regexp(t, `says nothing for \d+s, not even that it is alive`, err.Error())
}

func TestAServerThatStallsDuringAnAnswerIsGivenUp(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			_, _ = io.WriteString(w, "a part")
			w.(http.Flusher).Flush()
		}
		<-ended
	}))
	defer s.Close()
	defer close(ended)
	c := hurried(s.URL)
	var response *http.Response
	require.Eventually(t, func() (begun bool) { // a busy machine may not begin the answer within the first times
		var err error
		c.patience.silence *= 2
		response, err = c.open(t.Context(), http.MethodGet, "/v1/status", nil, "", http.NoBody)
		return err == nil
	}, mnemetest.Patience, time.Millisecond)
	got, err := io.ReadAll(response.Body)
	require.NoError(t, response.Body.Close())
	require.Equal(t, "a part", string(got))
	var away *awayError
	require.ErrorAs(t, err, &away)
}

func TestAnAnswerThatIsCutOffMeansThatTheServerIsAway(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "a part")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer s.Close()
	err := newClient(s.URL, "default").get(t.Context(), "/v1/status", nil, nil)
	var away *awayError
	require.ErrorAs(t, err, &away)
	require.ErrorContains(t, err, "stopped in the middle of its answer")
}

func TestALiveServerMayTakeLongToAnswer(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			time.Sleep(time.Second)
			_, _ = io.WriteString(w, `{"stream":{"head":`)
			w.(http.Flusher).Flush()
			time.Sleep(time.Second)
			_, _ = io.WriteString(w, `7}}`)
		}
	}))
	defer s.Close()
	c := hurried(s.URL)
	c.patience.probe = 20 * time.Second // a busy machine answers the probe within it
	var status httpapi.Status
	require.NoError(t, c.get(t.Context(), "/v1/status", nil, &status))
	require.EqualValues(t, 7, status.Stream.Head)
}

func TestWaitingForARebuildReportsAMissingServerAndGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		c := RebuildCmd{Projection: "graph"}
		list := rebuildList{Rebuilds: []httpapi.Rebuild{{Projection: "graph", Generation: 2, State: "building"}}}
		api := newClient("http://127.0.0.1:1", "default")
		api.http = &http.Client{Transport: missing{}}
		began := time.Now()
		err := c.await(t.Context(), api, newTerminal(io.Discard, &errs, "never"), &list)
		require.ErrorContains(t, err, "gave up after the server was down for 15m0s: the rebuild resumes when it is back, and mneme status shows its progress")
		require.InDelta(t, usualPatience.away.Seconds(), time.Since(began).Seconds(), 5)
		require.InDelta(t, 15, bytes.Count(errs.Bytes(), []byte("waiting for the server, down for")), 1, "it says so every minute")
	})
}

func TestALongCommandAsksAServerAgainThatIsBusyOrAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		after  string
		wait   time.Duration
		busy   bool
	}{
		{http.StatusTooManyRequests, "7", 7 * time.Second, true},
		{http.StatusServiceUnavailable, "5", 5 * time.Second, true},
		{http.StatusGatewayTimeout, "", 0, true},  // the log did not confirm
		{http.StatusBadGateway, "", 0, true},      // a proxy, while the server starts
		{http.StatusTooManyRequests, "", 0, true}, // of a proxy
		{http.StatusRequestTimeout, "", 0, true},
		{clientGone, "", 0, true}, // the next answer says whether the token was revoked
		{http.StatusInsufficientStorage, "", 0, false},
		{http.StatusUnprocessableEntity, "", 0, false},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.after != "" {
				w.Header().Set("Retry-After", c.after)
			}
			w.WriteHeader(c.status)
		}))
		t.Cleanup(s.Close)
		var list struct{}
		err := newClient(s.URL, "default").get(t.Context(), "/v1/events/1", nil, &list)
		require.Error(t, err)
		wait, busy := (&terminal{}).patient(nil).Busy(err)
		require.Equal(t, c.wait, wait, c.status)
		require.Equal(t, c.busy, busy, c.status)
	}
}

func TestALongWaitIsToldEveryMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		screen := newTerminal(&out, &out, "never")
		patience := screen.patient(screen.progress(1, ""))
		require.NoError(t, patience.Ask(t.Context(), func() error { return nil }))
		began := time.Now()
		require.NoError(t, patience.Ask(t.Context(), func() error {
			if time.Since(began) < 5*time.Minute {
				return &awayError{errors.New("no answer")}
			}
			return nil
		}))
		require.InDelta(t, 5, strings.Count(out.String(), "waiting, and trying again: no answer\n"), 1)
	})
}
