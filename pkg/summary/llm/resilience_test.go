package llm_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/llm"
)

const patience = mnemetest.Patience

func TestAnEndpointThatIsDown(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*llmtest.Endpoint){
		"refuses": func(e *llmtest.Endpoint) { e.Refuse() },
		"breaks":  func(e *llmtest.Endpoint) { e.Reply(llmtest.Break) },
		"no answer": func(e *llmtest.Endpoint) {
			e.Reply(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, w := setup(t)
			spoil(e)
			_, usage, err := w.Write(t.Context(), input())
			failed(t, err, llm.ClassUnreachable, summary.ErrUnavailable)
			require.Equal(t, 3, usage.Calls)
			require.EqualValues(t, 3, w.Stats().Failures[llm.ClassUnreachable])

			require.NoError(t, e.Listen())
			e.Reply(good(t))
			_, _, err = w.Write(t.Context(), input())
			require.NoError(t, err)
		})
	}
}

func TestAConnectionResetInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	e, w := setup(t)
	e.Reply(func(_ http.ResponseWriter, r *http.Request) {
		e.Reset()
		<-r.Context().Done()
	}, good(t))
	_, usage, err := w.Write(t.Context(), input())
	require.NoError(t, err)
	require.Equal(t, 2, usage.Calls)
}

func TestAnEndpointThatIsSilent(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*llmtest.Endpoint){
		"hangs":        func(e *llmtest.Endpoint) { e.Reply(llmtest.Hang) },
		"a black hole": func(e *llmtest.Endpoint) { e.Reply(good(t)); e.BlackHole() },
		"far too slow": func(e *llmtest.Endpoint) { e.Reply(good(t)); e.Delay(2 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, w := setup(t, timeout(50*time.Millisecond))
			spoil(e)
			_, usage, err := w.Write(t.Context(), input())
			failed(t, err, llm.ClassTimeout, summary.ErrUnavailable)
			require.Equal(t, 3, usage.Calls)
		})
	}
}

func TestTransientErrorsAreRetried(t *testing.T) {
	t.Parallel()
	e, w := setup(t)
	for _, status := range []int{408, 409, 500, 502, 503, 504, 529} {
		e.Reply(llmtest.Failure(status, "server_error", ""), llmtest.Failure(status, "", ""), good(t))
		_, usage, err := w.Write(t.Context(), input())
		require.NoError(t, err)
		require.Equal(t, 3, usage.Calls)
	}
	e.Reply(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<h1>Bad Gateway</h1>", http.StatusBadGateway)
	})
	_, _, err := w.Write(t.Context(), input())
	require.Equal(t, "HTTP 502", failed(t, err, llm.ClassServer, summary.ErrUnavailable).Reason)
}

// after requires that a moment is a wait after one between began and now, to the second, as dates of HTTP are.
func after(t *testing.T, moment, began time.Time, wait time.Duration) {
	t.Helper()
	require.WithinRange(t, moment, began.Add(wait-time.Second), time.Now().Add(wait))
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	t.Run("short, in seconds", func(t *testing.T) {
		t.Parallel()
		e, w := setup(t)
		e.Reply(llmtest.Busy(http.StatusTooManyRequests, "1"), good(t))
		began := time.Now()
		_, usage, err := w.Write(t.Context(), input())
		require.NoError(t, err)
		require.Equal(t, 2, usage.Calls)
		require.GreaterOrEqual(t, time.Since(began), time.Second)
	})
	for name, value := range map[string]func(time.Time) string{
		"long, in seconds": func(time.Time) string { return "120" },
		"long, as a date":  func(now time.Time) string { return now.Add(2 * time.Minute).UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, w := setup(t)
			began := time.Now()
			e.Reply(llmtest.Busy(http.StatusTooManyRequests, value(began)))
			_, usage, err := w.Write(t.Context(), input())
			until := failed(t, err, llm.ClassLimited, summary.ErrUnavailable).NotBefore
			after(t, until, began, 2*time.Minute)
			require.Equal(t, 1, usage.Calls)

			_, usage, err = w.Write(t.Context(), input())
			require.Equal(t, until, failed(t, err, llm.ClassLimited, summary.ErrUnavailable).NotBefore)
			require.Zero(t, usage.Calls, "the server is not asked earlier")
			require.Equal(t, 1, e.Calls())
		})
	}
	t.Run("a shorter one of a call that was under way", func(t *testing.T) {
		t.Parallel()
		e, w := setup(t)
		began, arrived, first := time.Now(), make(chan struct{}), make(chan struct{})
		e.Reply(func(w http.ResponseWriter, r *http.Request) {
			close(arrived)
			<-first
			llmtest.Busy(http.StatusTooManyRequests, "60")(w, r)
		}, llmtest.Busy(http.StatusTooManyRequests, "120"))
		slow := make(chan error)
		go func() {
			_, _, err := w.Write(t.Context(), input())
			slow <- err
		}()
		<-arrived
		_, _, err := w.Write(t.Context(), input())
		until := failed(t, err, llm.ClassLimited, summary.ErrUnavailable).NotBefore
		after(t, until, began, 2*time.Minute)
		close(first)
		require.Error(t, <-slow)
		_, _, err = w.Write(t.Context(), input())
		require.Equal(t, until, failed(t, err, llm.ClassLimited, summary.ErrUnavailable).NotBefore)
		require.Equal(t, 2, e.Calls())
	})
	t.Run("absurd", func(t *testing.T) {
		t.Parallel()
		for value, longest := range map[string]time.Duration{"1e300": time.Hour, "99999999": time.Hour, "NaN": 0, "-5": 0, "soon": 0, "Mon, 02 Jan 2006 15:04:05 GMT": 0} {
			e, w := setup(t)
			e.Reply(llmtest.Busy(http.StatusServiceUnavailable, value))
			began := time.Now()
			_, _, err := w.Write(t.Context(), input())
			until := failed(t, err, llm.ClassServer, summary.ErrUnavailable).NotBefore
			if longest == 0 {
				require.Zero(t, until, value)
			} else {
				after(t, until, began, longest)
			}
		}
	})
}

func TestAWrongConfigurationIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	for status, check := range map[int]string{400: "check the key", 401: "check the key", 403: "check the key", 402: "check the account", 404: "check the URL and the model", 405: "check the URL", 308: "check the URL"} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			e := llmtest.New(t)
			w := on(t, llm.Fast(5, time.Hour), e)
			e.Reply(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "/v1/chat/completions")
				said := "Incorrect API key provided: " + key
				if status == http.StatusBadRequest {
					said = "API key not valid. Please pass a valid API key."
				}
				llmtest.Failure(status, "invalid_request_error", said)(w, r)
			})
			began := time.Now()
			_, usage, err := w.Write(t.Context(), input())
			require.Contains(t, failed(t, err, llm.ClassDenied, summary.ErrUnavailable).Reason, check)
			require.Equal(t, 1, usage.Calls)
			require.Equal(t, "open", w.Stats().Breaker, "at once")

			_, usage, err = w.Write(t.Context(), input())
			again := failed(t, err, llm.ClassBreaker, summary.ErrUnavailable)
			require.Contains(t, again.Reason, check)
			after(t, again.NotBefore, began, time.Hour)
			require.Zero(t, usage.Calls)
			require.Equal(t, 1, e.Calls())
		})
	}
}

func TestWritersOfOneEndpointShareTheBreaker(t *testing.T) {
	t.Parallel()
	e := llmtest.New(t)
	shared := llm.Fast(4, time.Hour)
	w, other := on(t, shared, e), on(t, shared, e)
	elsewhere := on(t, shared, e, func(p *llm.Profile) { p.Model = "another" })
	e.Reply(llmtest.Failure(http.StatusInternalServerError, "", ""))
	_, _, err := w.Write(t.Context(), input())
	failed(t, err, llm.ClassServer, summary.ErrUnavailable)
	require.Equal(t, "closed", w.Stats().Breaker, "three failures")
	began := time.Now()
	_, usage, err := other.Write(t.Context(), input())
	opened := failed(t, err, llm.ClassServer, summary.ErrUnavailable)
	require.Contains(t, opened.Reason, "HTTP 500")
	after(t, opened.NotBefore, began, time.Hour)
	require.Equal(t, 1, usage.Calls, "the fourth failure opens it, without another try")
	require.Equal(t, "open", w.Stats().Breaker)
	require.Equal(t, "open", other.Stats().Breaker)
	require.Equal(t, "closed", elsewhere.Stats().Breaker)

	e.Reply(good(t))
	_, _, err = w.Write(t.Context(), input())
	require.Contains(t, failed(t, err, llm.ClassBreaker, summary.ErrUnavailable).Reason, "HTTP 500")
	_, _, err = elsewhere.Write(t.Context(), input())
	require.NoError(t, err)
}

func TestTheBreakerClosesAgain(t *testing.T) {
	t.Parallel()
	e := llmtest.New(t)
	w := on(t, llm.Fast(1, 10*time.Millisecond), e)
	e.Reply(llmtest.Failure(http.StatusInternalServerError, "", ""))
	for range 3 { // the first call opens it; one of the next is the test call and opens it again
		calls := e.Calls()
		_, _, err := w.Write(t.Context(), input())
		require.ErrorIs(t, err, summary.ErrUnavailable)
		require.Greater(t, e.Calls(), calls)
		require.Eventually(t, func() bool { return w.Stats().Breaker == "half-open" }, patience, time.Millisecond)
	}
	e.Reply(good(t))
	_, _, err := w.Write(t.Context(), input())
	require.NoError(t, err)
	require.Equal(t, "closed", w.Stats().Breaker)
}

func TestAnUnusableAnswerClosesTheBreaker(t *testing.T) {
	t.Parallel()
	e := llmtest.New(t)
	w := on(t, llm.Fast(5, time.Millisecond), e)
	e.Reply(llmtest.Failure(http.StatusUnauthorized, "", ""))
	_, _, err := w.Write(t.Context(), input())
	failed(t, err, llm.ClassDenied, summary.ErrUnavailable)
	require.Eventually(t, func() bool { return w.Stats().Breaker == "half-open" }, patience, time.Millisecond)
	e.Reply(llmtest.Refusal())
	_, _, err = w.Write(t.Context(), input())
	failed(t, err, llm.ClassRefused, summary.ErrUnusable)
	require.Equal(t, "closed", w.Stats().Breaker)
}

// Calls under way when another one was denied and opened the breaker may be denied too. They must not make a later failure
// of another kind look like a denial.
func TestADenialThatCameTooLateIsForgotten(t *testing.T) {
	t.Parallel()
	e := llmtest.New(t)
	w := on(t, llm.Fast(4, time.Millisecond), e)
	var both sync.WaitGroup
	both.Add(2)
	e.Reply(func(out http.ResponseWriter, r *http.Request) {
		both.Done()
		both.Wait()
		llmtest.Failure(http.StatusUnauthorized, "", "")(out, r)
	})
	one, two := inBackground(t.Context(), w), inBackground(t.Context(), w)
	failed(t, await(t, one).err, llm.ClassDenied, summary.ErrUnavailable)
	failed(t, await(t, two).err, llm.ClassDenied, summary.ErrUnavailable)
	require.Eventually(t, func() bool { return w.Stats().Breaker == "half-open" }, patience, time.Millisecond)
	e.Reply(good(t))
	_, _, err := w.Write(t.Context(), input())
	require.NoError(t, err)
	e.Reply(llmtest.Failure(http.StatusInternalServerError, "", ""))
	_, _, err = w.Write(t.Context(), input())
	failed(t, err, llm.ClassServer, summary.ErrUnavailable)
	require.Equal(t, "closed", w.Stats().Breaker, "three failures of four")
}

// wrote is the result of a Write in the background.
type wrote struct {
	usage summary.Usage
	err   error
}

func inBackground(ctx context.Context, w *llm.Writer) <-chan wrote {
	done := make(chan wrote, 1)
	go func() {
		_, usage, err := w.Write(ctx, input())
		done <- wrote{usage, err}
	}()
	return done
}

func await(t *testing.T, done <-chan wrote) wrote {
	t.Helper()
	select {
	case got := <-done:
		return got
	case <-time.After(patience):
		t.Fatal("it does not stop")
		return wrote{}
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	t.Run("in the middle of a call", func(t *testing.T) {
		t.Parallel()
		e := llmtest.New(t)
		w := on(t, llm.Fast(1, time.Hour), e, timeout(time.Hour))
		e.Reply(llmtest.Hang)
		ctx, cancel := context.WithCancel(t.Context())
		done := inBackground(ctx, w)
		require.Eventually(t, func() bool { return e.Calls() == 1 }, patience, time.Millisecond)
		cancel()
		got := await(t, done)
		failed(t, got.err, llm.ClassCanceled, summary.ErrUnavailable)
		require.ErrorIs(t, got.err, context.Canceled)
		require.Equal(t, 1, got.usage.Calls)
		require.Equal(t, "closed", w.Stats().Breaker, "the endpoint is not to blame")
	})
	t.Run("in the middle of a wait", func(t *testing.T) {
		t.Parallel()
		e, w := setup(t)
		e.Reply(llmtest.Busy(http.StatusTooManyRequests, "9"))
		ctx, cancel := context.WithCancel(t.Context())
		done := inBackground(ctx, w)
		require.Eventually(t, func() bool { return w.Stats().Failures[llm.ClassLimited] == 1 }, patience, time.Millisecond)
		cancel()
		got := await(t, done)
		failed(t, got.err, llm.ClassCanceled, summary.ErrUnavailable)
		require.ErrorIs(t, got.err, context.Canceled)
	})
	t.Run("a deadline before the next try", func(t *testing.T) {
		t.Parallel()
		e, w := setup(t)
		e.Reply(llmtest.Busy(http.StatusTooManyRequests, "9"))
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		_, _, err := w.Write(ctx, input())
		failed(t, err, llm.ClassLimited, summary.ErrUnavailable)
		require.NoError(t, ctx.Err(), "waiting would be useless")
	})
	t.Run("before", func(t *testing.T) {
		t.Parallel()
		_, w := setup(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, usage, err := w.Write(ctx, input())
		failed(t, err, llm.ClassCanceled, summary.ErrUnavailable)
		require.Zero(t, usage.Calls)
	})
	t.Run("while others are served", func(t *testing.T) {
		t.Parallel()
		e := llmtest.New(t)
		shared := llm.Fast(never, time.Hour)
		shared.Concurrency = 1
		w := on(t, shared, e, timeout(time.Hour))
		e.Reply(llmtest.Hang)
		ctx, cancel := context.WithCancel(t.Context())
		first := inBackground(ctx, w)
		require.Eventually(t, func() bool { return e.Calls() == 1 }, patience, time.Millisecond)
		limited, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer stop()
		_, usage, err := w.Write(limited, input())
		failed(t, err, llm.ClassCanceled, summary.ErrUnavailable)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, usage.Calls)
		cancel()
		await(t, first)
	})
}

func TestConcurrentCallsAreLimited(t *testing.T) {
	t.Parallel()
	e := llmtest.New(t)
	w := on(t, llm.Fast(never, time.Hour), e)
	var mu sync.Mutex
	now, most := 0, 0
	full, reply := make(chan struct{}), good(t)
	e.Reply(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now++
		if most = max(most, now); now == llm.DefaultConcurrency && most == now {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		mu.Unlock()
		<-full // until the limit is reached
		mu.Lock()
		now--
		mu.Unlock()
		reply(rw, r)
	})
	var all sync.WaitGroup
	for range 4 * llm.DefaultConcurrency {
		all.Go(func() {
			_, _, err := w.Write(t.Context(), input())
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Equal(t, llm.DefaultConcurrency, most)
}

func TestFailuresOfAllWritersAreCountedByClass(t *testing.T) {
	t.Parallel()
	e, endpoints := llmtest.New(t), llm.Fast(never, time.Hour)
	one, other := on(t, endpoints, e), on(t, endpoints, e, func(p *llm.Profile) { p.MaxCallsPerHour = 1 })
	e.Reply(llmtest.Chat("no JSON"), llmtest.Failure(http.StatusInternalServerError, "", ""), good(t), llmtest.Chat("no JSON"))
	for _, w := range []*llm.Writer{one, one, other, other} {
		_, _, _ = w.Write(t.Context(), input())
	}
	counted := endpoints.Failures()
	require.Len(t, counted, 16, "a class that has not occurred is 0")
	for class, n := range counted {
		require.Equal(t, map[llm.Class]int64{llm.ClassInvalid: 2, llm.ClassServer: 1, llm.ClassCapped: 1}[class], n, class)
	}
}
