package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"mneme.dev/mneme/pkg/eventlog"
)

// stopTime is how long the program may take to end after an interrupt.
const stopTime = time.Minute

// program is the real program, `mneme up`, as a separate process in a separate directory.
type program struct {
	cmd   *exec.Cmd
	err   strings.Builder // its standard error
	http  string
	nats  string
	ready time.Duration // from starting the process to the line with its address
}

// up starts the program on a data directory and returns once it answers. The program ends with ctx.
//
// It writes no summaries unless flags select a writer, because they would be events that nobody
// counts.
func (what Program) up(ctx context.Context, data string, flags ...string) (*program, error) {
	p := &program{}
	if len(flags) == 0 {
		flags = []string{"--summary-writer", "off"}
	}
	p.cmd = exec.CommandContext(ctx, what.Executable, append([]string{"up", "--json", "--data", data, "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0"}, flags...)...)
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(os.Interrupt) }
	p.cmd.WaitDelay = stopTime
	p.cmd.Env = what.environment()
	p.cmd.Stderr = &p.err
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	p.ready = time.Since(began)
	var where struct{ HTTP, NATS string }
	if err == nil {
		err = json.Unmarshal(line, &where)
	}
	if err != nil {
		p.kill()
		return nil, errors.Join(ctx.Err(), fmt.Errorf("%s up did not start: %s", what.Executable, strings.TrimSpace(p.err.String())))
	}
	p.http, p.nats = where.HTTP, where.NATS
	return p, nil
}

// imported imports transcripts into the program in an empty directory and runs do on it, with the
// program's settings for embeddings and summaries. It then removes the directory and the read
// models.
func (what Program) imported(ctx context.Context, paths []string, embeddings Embeddings, summaries string, progress io.Writer, do func(*program) error) (Store, error) {
	return what.loaded(ctx, embeddings, summaries, func(server *program) error {
		_, err := importInto(ctx, server, ContextOptions{Program: what, Paths: paths, Progress: progress})
		return err
	}, do)
}

// loaded is [Program.imported] with events that load publishes.
func (what Program) loaded(ctx context.Context, embeddings Embeddings, summaries string, load, do func(*program) error) (Store, error) {
	return what.running(ctx, append(embeddings.flags(), "--summary-writer", summaries), func(server *program) error {
		if err := load(server); err != nil {
			return err
		}
		if embeddings.Kind == "openai" {
			if _, err := newAPI(server.http, tenant, 1).awaitApplied(ctx); err != nil {
				return err
			}
		}
		return do(server)
	})
}

// running runs do on the program in an empty directory, and then removes the directory and the read models.
func (what Program) running(ctx context.Context, flags []string, do func(*program) error) (store Store, err error) {
	if store, err = what.take(ctx); err != nil {
		return store, err
	}
	defer func() { err = what.giveBack(ctx, err) }()
	dir, err := os.MkdirTemp("", "mneme-bench-")
	if err != nil {
		return store, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := what.up(ctx, dir, flags...)
	if err != nil {
		return store, err
	}
	defer server.stop()
	return store, do(server)
}

// Embeddings are the program's settings for comparing messages, such as MNEME_EMBEDDINGS; a key is
// taken from the environment.
type Embeddings struct {
	Kind  string // builtin, openai, off
	URL   string // the API's URL for openai; "" for the program's default
	Model string // of openai
}

func (e Embeddings) flags() []string {
	list := []string{"--embeddings", e.Kind}
	if e.URL != "" {
		list = append(list, "--embeddings-url", e.URL)
	}
	if e.Model != "" {
		list = append(list, "--embeddings-model", e.Model)
	}
	return list
}

// stop ends the program like Ctrl-C and waits for it. It is legal on nil.
func (p *program) stop() {
	if p == nil {
		return
	}
	_ = p.cmd.Cancel()
	_ = p.cmd.Wait()
}

// kill ends it like a power cut.
func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// api reads from the HTTP API over persistent connections.
type api struct {
	client *http.Client
	base   string
	tenant string
}

// newAPI returns a client for this many concurrent requests.
func newAPI(base, tenant string, atOnce int) *api {
	return apiOf(&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}, base, tenant)
}

// apiOf returns a client that sends its requests with another one. An empty tenant leaves it to the token.
func apiOf(client *http.Client, base, tenant string) *api {
	return &api{client, strings.TrimRight(base, "/"), tenant}
}

// get reads a whole answer. If the server is overloaded, it retries when the server says.
func (a *api) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	for began := time.Now(); ; {
		body, later, err := a.once(ctx, http.MethodGet, path, query, nil, http.StatusOK)
		if later == 0 || time.Since(began) > busyFor {
			return body, err
		}
		if err := wait(ctx, later); err != nil {
			return nil, err
		}
	}
}

// busyFor is how long a server may stay overloaded.
const busyFor = 2 * time.Minute

// read is [api.get] for an answer in JSON.
func (a *api) read(ctx context.Context, path string, query url.Values, answer any) error {
	raw, err := a.get(ctx, path, query)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, answer)
}

// send sends a small body and returns the answer, which must have a status.
func (a *api) send(ctx context.Context, method, path string, query url.Values, body any, want int) ([]byte, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	answer, _, err := a.once(ctx, method, path, query, bytes.NewReader(raw), want)
	return answer, err
}

// once sends a request once. Without a query it sends no tenant either, because the overall status has none. If the server
// is overloaded, later is how long to wait before a retry.
func (a *api) once(ctx context.Context, method, path string, query url.Values, body io.Reader, want int) (answer []byte, later time.Duration, err error) {
	if query != nil && a.tenant != "" {
		query.Set("tenant", a.tenant)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.base+path+"?"+query.Encode(), body)
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Accept-Encoding", "identity") // to measure the answers and not gzip
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	if err == nil && response.StatusCode != want {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	if seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")); response.StatusCode == http.StatusServiceUnavailable {
		later = time.Duration(seconds) * time.Second
	}
	return answer, later, err
}

// pages reads a list page by page; member has its rows.
func pages[T any](ctx context.Context, a *api, path, member string) (list []T, err error) {
	query := url.Values{"limit": {"1000"}}
	for {
		var page map[string]json.RawMessage
		if err := a.read(ctx, path, query, &page); err != nil {
			return nil, err
		}
		var rows []T
		var next string
		if err := json.Unmarshal(page[member], &rows); err != nil {
			return nil, err
		}
		list = append(list, rows...)
		if _ = json.Unmarshal(page["next_cursor"], &next); next == "" { // it is absent at the end
			return list, nil
		}
		query.Set("cursor", next)
	}
}

// conversationPath returns the path of a conversation, or of something below it.
func conversationPath(id, below string) string {
	escaped := url.PathEscape(id)
	if id == "." || id == ".." { // in a path they would separate folders
		escaped = strings.ReplaceAll(id, ".", "%2E")
	}
	return "/v1/conversations/" + escaped + below
}

// listed is the needed part of a conversation.
type listed struct {
	ID        string `json:"id"`
	Title     string `json:"title"`
	TurnCount int    `json:"turn_count"`
}

// conversations lists all conversations of the tenant.
func (a *api) conversations(ctx context.Context) ([]listed, error) {
	return pages[listed](ctx, a, "/v1/conversations", "conversations")
}

// log opens the program's log. The caller closes its connection.
func (p *program) log(ctx context.Context) (*eventlog.Log, error) {
	return openLog(ctx, p.nats)
}

// openLog opens the log of a server. The caller closes its connection.
func openLog(ctx context.Context, server string, options ...nats.Option) (*eventlog.Log, error) {
	conn, err := eventlog.Connect(server, "bench", quiet, options...)
	if err != nil {
		return nil, err
	}
	log, err := eventlog.Open(ctx, conn)
	if err != nil {
		conn.Close()
	}
	return log, err
}
