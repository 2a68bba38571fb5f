package access_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

var teamA = access.Rights{Tenant: "team-a", Role: access.Write}

func issue(t testing.TB, rights access.Rights) (string, access.Record) {
	t.Helper()
	token, record, err := access.Issue(rights, "test", time.Now(), time.Hour)
	require.NoError(t, err)
	return token, record
}

func TestATokenIsRecognizedAndOneWrongCharacterIsNot(t *testing.T) {
	pattern := regexp.MustCompile(access.Pattern)
	rapid.Check(t, func(t *rapid.T) {
		token := access.NewToken()
		if !access.IsToken(token) || pattern.FindString("key="+token+"\n") != token {
			t.Fatalf("%s is not recognized", token)
		}
		at := rapid.IntRange(0, len(token)-1).Draw(t, "at")
		other := rapid.ByteRange(' ', '~').Draw(t, "other")
		if changed := token[:at] + string(other) + token[at+1:]; changed != token && access.IsToken(changed) {
			t.Fatalf("%s passes for a token", changed)
		}
	})
}

func FuzzHashOf(f *testing.F) {
	f.Add(access.NewToken())
	f.Add("mneme_")
	f.Fuzz(func(t *testing.T, text string) {
		if _, ok := access.HashOf(text); ok != access.IsToken(text) {
			t.Fatalf("%q", text)
		}
	})
}

func TestRightsThatContradictThemselvesAreRefused(t *testing.T) {
	for says, r := range map[string]access.Rights{
		"the role is missing":         {Tenant: "a"},
		"the tenant is missing":       {Role: access.Read},
		"not both":                    {Tenant: "a", AllTenants: true, Role: access.Read},
		"belongs to one tenant":       {AllTenants: true, Project: "p", Role: access.Read},
		"of one project can only rea": {Tenant: "a", Project: "p", Role: access.Write},
		"at most 128 bytes":           {Tenant: strings.Repeat("a", 129), Role: access.Read},
	} {
		_, _, err := access.Issue(r, "", time.Now(), 0)
		require.ErrorContains(t, err, says)
	}
}

// following starts following a store until the end of the test.
func following(t *testing.T, s access.Store) *access.Tokens {
	t.Helper()
	tokens := access.NewTokens(time.Now)
	loaded, ctx := make(chan struct{}, 100), t.Context()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		s.Follow(ctx, tokens, quiet, func() {
			select {
			case loaded <- struct{}{}:
			default:
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	select {
	case <-loaded:
	case <-time.After(mnemetest.Patience):
		t.Fatal("not loaded")
	}
	return tokens
}

// accepted waits until a token is accepted, or refused.
func accepted(t *testing.T, tokens *access.Tokens, token string, want bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := tokens.Check(t.Context(), token)
		return (err == nil) == want
	}, mnemetest.Patience, 5*time.Millisecond)
}

func newBucket(t *testing.T) (*access.Bucket, jetstream.JetStream) {
	t.Helper()
	_, conn := natstest.Alone(t, embedded.Config{}, natsdeploy.Settings{MaxBytes: 1 << 20})
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	bucket, err := access.NewBucket(conn)
	require.NoError(t, err)
	return bucket, js
}

func TestBothStoresAcceptAndRevokeTokensEverywhereAtOnce(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) access.Store{
		"bucket": func(t *testing.T) access.Store { b, _ := newBucket(t); return b },
		"file":   func(t *testing.T) access.Store { return access.NewFile(filepath.Join(t.TempDir(), "tokens.jsonl")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			early, record := issue(t, teamA)
			require.NoError(t, store.Add(mnemetest.Context(t), record))
			one, two := following(t, store), following(t, store)
			accepted(t, one, early, true)
			accepted(t, two, early, true)

			late, another := issue(t, access.Rights{AllTenants: true, Role: access.Operate})
			require.NoError(t, store.Add(mnemetest.Context(t), another))
			accepted(t, one, late, true)
			accepted(t, two, late, true)
			list, err := store.List(mnemetest.Context(t))
			require.NoError(t, err)
			require.Len(t, list, 2)
			found, err := access.Find(list, late)
			require.NoError(t, err)
			require.Equal(t, another, found.Record, "a leaked token names itself")

			grant, err := one.Check(t.Context(), early)
			require.NoError(t, err)
			require.Equal(t, teamA, grant.Rights)
			require.NoError(t, store.Remove(mnemetest.Context(t), record.Hash))
			<-grant.Ended[0].Done() // what its bearer has open ends
			accepted(t, one, early, false)
			accepted(t, two, early, false)
			accepted(t, one, late, true)
			require.ErrorIs(t, store.Remove(mnemetest.Context(t), record.Hash), access.ErrUnknown)
		})
	}
}

func TestNeitherStoreHoldsTheToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.jsonl")
	token, record := issue(t, teamA)
	require.NoError(t, access.NewFile(path).Add(t.Context(), record))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), token[6:])
	require.Contains(t, string(text), record.Hash.String())
}

func TestTheLastUseIsWrittenAndListed(t *testing.T) {
	t.Parallel()
	store, js := newBucket(t)
	token, record := issue(t, teamA)
	require.NoError(t, store.Add(mnemetest.Context(t), record))
	tokens := following(t, store)
	for range 1000 {
		_, err := tokens.Check(t.Context(), token)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		list, err := store.List(t.Context())
		return err == nil && !list[0].LastUsed.IsZero()
	}, mnemetest.Patience, 5*time.Millisecond)
	bucket, err := js.KeyValue(mnemetest.Context(t), natsdeploy.TokenBucket)
	require.NoError(t, err)
	status, err := bucket.Status(mnemetest.Context(t))
	require.NoError(t, err)
	require.LessOrEqual(t, status.(*jetstream.KeyValueBucketStatus).StreamInfo().State.LastSeq, uint64(2), "one write for 1000 uses")
}

// A slow disk of the log's server delays what is written about uses by seconds, and a revocation may not wait for that.
func TestATokenIsRevokedAtOnceWhileTheServerKeepsSilentAboutItsLastUse(t *testing.T) {
	t.Parallel()
	store, js := newBucket(t)
	_, err := store.List(mnemetest.Context(t)) // makes the bucket
	require.NoError(t, err)
	tokens := following(t, store)
	stream, err := js.Stream(mnemetest.Context(t), "KV_"+natsdeploy.TokenBucket)
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	config.Subjects = []string{"$KV." + natsdeploy.TokenBucket + ".token.>"}
	_, err = js.UpdateStream(mnemetest.Context(t), config)
	require.NoError(t, err)
	silent, err := js.Conn().SubscribeSync("$KV." + natsdeploy.TokenBucket + ".used.>") // it never answers
	require.NoError(t, err)
	require.NoError(t, js.Conn().Flush())

	bucket, err := js.KeyValue(mnemetest.Context(t), natsdeploy.TokenBucket)
	require.NoError(t, err)
	const silence = 5 * time.Second // that the client waits for an answer
	took := silence
	for try := 0; try < 5 && took >= silence-time.Second; try++ { // a busy machine may need longer, but not each time
		token, record := issue(t, teamA)
		require.NoError(t, store.Add(mnemetest.Context(t), record))
		accepted(t, tokens, token, true)
		grant, err := tokens.Check(t.Context(), token)
		require.NoError(t, err)
		_, err = silent.NextMsg(mnemetest.Patience)
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, bucket.Purge(mnemetest.Context(t), "token."+record.Hash.String()))
		<-grant.Ended[0].Done()
		took = time.Since(began)
	}
	require.Less(t, took, silence-time.Second, "each revocation waited for the silent server")
}

func TestALostBucketGrantsNothingAndARestoredOneAgain(t *testing.T) {
	t.Parallel()
	store, js := newBucket(t)
	token, record := issue(t, teamA)
	require.NoError(t, store.Add(mnemetest.Context(t), record))
	tokens := following(t, store)
	accepted(t, tokens, token, true)
	require.NoError(t, js.DeleteKeyValue(mnemetest.Context(t), natsdeploy.TokenBucket))
	accepted(t, tokens, token, false)
	require.NoError(t, store.Add(mnemetest.Context(t), record))
	accepted(t, tokens, token, true)
}

func TestARecordThatCannotBeReadGrantsNothing(t *testing.T) {
	t.Parallel()
	store, js := newBucket(t)
	token, record := issue(t, teamA)
	require.NoError(t, store.Add(mnemetest.Context(t), record))
	tokens := following(t, store)
	accepted(t, tokens, token, true)
	bucket, err := js.KeyValue(mnemetest.Context(t), natsdeploy.TokenBucket)
	require.NoError(t, err)
	_, err = bucket.PutString(mnemetest.Context(t), "token."+record.Hash.String(), `{"sha256":"`+record.Hash.String()+`","tenant":"team-a","role":"write","only_on_sundays":true}`)
	require.NoError(t, err)
	accepted(t, tokens, token, false)
	_, err = store.List(mnemetest.Context(t))
	require.ErrorContains(t, err, "only_on_sundays")
}

func TestALineWithMoreThanARecordGrantsNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.jsonl")
	_, record := issue(t, teamA)
	const good = `{"sha256":"%s","tenant":"team-a","role":"write"}`
	for _, more := range []string{`, "expires_at":"2001-01-01T00:00:00Z"}`, `{"role":"read"}`, ` # retired`} {
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, good+"%s\n", record.Hash, more), 0o600))
		_, err := access.NewFile(path).Read()
		require.ErrorContains(t, err, "line 1: more follows the record", more)
	}
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, good+" \r\n", record.Hash), 0o600))
	list, err := access.NewFile(path).Read()
	require.NoError(t, err)
	require.Len(t, list, 1)
}

func TestAFileThatBreaksKeepsTheTokensItHad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.jsonl")
	file := access.NewFile(path)
	token, record := issue(t, teamA)
	require.NoError(t, file.Add(t.Context(), record))
	tokens := following(t, file)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append([]byte("# ours\n\n{\"tenant\":\n"), good...), 0o600))
	_, err = file.Read()
	require.ErrorContains(t, err, "line 3")
	require.Error(t, file.Load(tokens))
	accepted(t, tokens, token, true)
	require.NoError(t, os.WriteFile(path, append([]byte("# ours\n\n"), good...), 0o600))
	second, another := issue(t, teamA)
	require.NoError(t, file.Add(t.Context(), another))
	accepted(t, tokens, second, true)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "# ours\n\n"), "comments stay")
}

func TestWhoWaitsForAnotherChangeOfTheFileCanBeInterrupted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.jsonl")
	other := flock.New(path + ".lock")
	require.NoError(t, other.Lock())
	t.Cleanup(func() { require.NoError(t, other.Unlock()) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, record := issue(t, teamA)
	require.ErrorIs(t, access.NewFile(path).Add(ctx, record), context.DeadlineExceeded)
	require.ErrorIs(t, access.NewFile(path).Remove(ctx, record.Hash), context.DeadlineExceeded)
}

func TestAnExpiredTokenIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.jsonl")
	now := time.Now()
	token, record, err := access.Issue(teamA, "", now, time.Minute)
	require.NoError(t, err)
	require.NoError(t, access.NewFile(path).Add(t.Context(), record))
	tokens := access.NewTokens(func() time.Time { return now })
	require.NoError(t, access.NewFile(path).Load(tokens))
	_, err = tokens.Check(t.Context(), token)
	require.NoError(t, err)
	now = now.Add(time.Minute)
	_, err = tokens.Check(t.Context(), token)
	require.ErrorIs(t, err, access.ErrInvalid)
}

func TestOnlyOneBearerTokenIsTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.jsonl")
	token, record := issue(t, teamA)
	require.NoError(t, access.NewFile(path).Add(t.Context(), record))
	gate := &access.Gate{Tokens: access.NewTokens(time.Now)}
	require.NoError(t, access.NewFile(path).Load(gate.Tokens))
	for header, want := range map[string]error{
		"Bearer " + token: nil, "bearer  " + token + " ": nil,
		"Basic " + token: access.ErrInvalid, token: access.ErrInvalid, "Bearer": access.ErrInvalid, "Bearer " + token + "x": access.ErrInvalid,
		"Bearer " + token + ", Bearer " + token: access.ErrInvalid, "Bearer eyJhbGciOiJub25lIn0.e30.": access.ErrInvalid, "Bearer " + strings.Repeat("a", 1<<20): access.ErrInvalid,
	} {
		_, err := gate.Check(&http.Request{Header: http.Header{"Authorization": {header}}})
		require.ErrorIs(t, err, want, "%.60q", header)
	}
	_, err := gate.Check(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token, "Bearer " + token}}})
	require.ErrorIs(t, err, access.ErrInvalid)
	_, err = gate.Check(&http.Request{Header: http.Header{}})
	require.ErrorIs(t, err, access.ErrNoToken)
}

// BenchmarkCheck measures the check of a good token, of an unknown one, and of garbage,
// among 10,000 tokens.
func BenchmarkCheck(b *testing.B) {
	path := filepath.Join(b.TempDir(), "tokens.jsonl")
	var text strings.Builder
	good := ""
	for range 10_000 {
		token, record := issue(b, teamA)
		good = token
		text.WriteString(`{"sha256":"` + record.Hash.String() + `","created_at":"2026-01-01T00:00:00Z","tenant":"team-a","role":"write"}` + "\n")
	}
	require.NoError(b, os.WriteFile(path, []byte(text.String()), 0o600))
	tokens := access.NewTokens(time.Now)
	require.NoError(b, access.NewFile(path).Load(tokens))
	for name, token := range map[string]string{"good": good, "unknown": access.NewToken(), "garbage": strings.Repeat("x", len(good))} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := tokens.Check(b.Context(), token)
				if (err == nil) != (token == good) {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestAChangedFileOfTokensKeepsItsModeAndItsLink(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	target, link := filepath.Join(folder, "shared"), filepath.Join(folder, "tokens.jsonl")
	require.NoError(t, os.WriteFile(target, nil, 0o640))
	require.NoError(t, os.Chmod(target, 0o640))
	require.NoError(t, os.Symlink("shared", link))
	file := access.NewFile(link)
	_, record := issue(t, teamA)
	require.NoError(t, file.Add(t.Context(), record))
	require.NoError(t, file.Remove(t.Context(), record.Hash))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
	info, err = os.Stat(target)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm(), "the server can still read it")
}

func TestTwoLinksToAFileOfTokensShareOneLock(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	target := filepath.Join(folder, "shared")
	var edits sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		link := filepath.Join(folder, name, "tokens.jsonl")
		require.NoError(t, os.Mkdir(filepath.Dir(link), 0o700))
		require.NoError(t, os.Symlink(target, link))
		var records []access.Record
		for range 20 {
			_, record := issue(t, teamA)
			records = append(records, record)
		}
		edits.Go(func() {
			for _, record := range records {
				assert.NoError(t, access.NewFile(link).Add(t.Context(), record))
			}
		})
	}
	edits.Wait()
	records, err := access.NewFile(target).Read()
	require.NoError(t, err)
	require.Len(t, records, 40, "an edit was lost")
}
