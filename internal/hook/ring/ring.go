package ring

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// DefaultURL is where the HTTP API of a server on this machine listens.
const DefaultURL = "http://127.0.0.1:8420"

// Off is the environment variable that keeps hooks silent if it is "off". Programs set it for agents that
// they start themselves, so that these are not remembered.
const Off = "MNEME_HOOK"

// Patience is how long a hook may take, from its start.
const Patience = 300 * time.Millisecond

// maxAnswer is the most that a server may answer, in bytes.
const maxAnswer = 64 << 10

// Options say where the server is.
type Options struct {
	URL       string // of the HTTP API
	Tenant    string // "" leaves it to the server
	Token     string // "" sends none
	TokenFile string
	CAFile    string
	Spool     Spool
}

// FromEnvironment returns the options from the settings of the client commands. It ignores MNEME_HOOK=off, see [Main].
func FromEnvironment() Options {
	o := Options{
		URL: os.Getenv("MNEME_URL"), Tenant: os.Getenv("MNEME_TENANT"),
		Token: os.Getenv("MNEME_TOKEN"), TokenFile: os.Getenv("MNEME_TOKEN_FILE"), CAFile: os.Getenv("MNEME_CA_FILE"),
	}
	o.URL = cmp.Or(o.URL, DefaultURL)
	o.Spool = UserSpool(o.URL, o.Tenant)
	return o
}

const usage = `mneme-hook [--url URL] [--tenant NAME] [--token-file PATH] AGENT

Coding agents run this at their events, see mneme connect. It reads the event on standard input and prints what
the server says the agent should see. It never fails: without a server it prints nothing. MNEME_HOOK=off turns it off.
`

// Main runs a hook whose arguments are [--url URL] [--tenant NAME] [--token-file PATH] AGENT, or prints its usage for
// --help. It never fails.
func Main(args []string, in io.Reader, out io.Writer) {
	if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
		_, _ = io.WriteString(out, usage)
		return
	}
	if os.Getenv(Off) == "off" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience-20*time.Millisecond) // the rest is for the start of the process
	defer cancel()
	o, agent := FromArguments(args)
	Run(ctx, o, agent, in, out)
}

// FromArguments returns the options from the environment and the arguments of a hook, see [Main], and the agent.
func FromArguments(args []string) (o Options, agent string) {
	o = FromEnvironment()
	for len(args) > 0 {
		name, value, joined := strings.Cut(args[0], "=")
		args = args[1:]
		if !strings.HasPrefix(name, "-") {
			agent = name
			continue
		}
		if !joined && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		switch name {
		case "--url":
			o.URL = value
		case "--tenant":
			o.Tenant = value
		case "--token-file":
			o.Token, o.TokenFile = "", value
		}
	}
	o.Spool = UserSpool(o.URL, o.Tenant)
	return o, agent
}

// Run reads an event of an agent and writes the server's answer, or nothing. It returns at the latest when the context
// ends, even while the agent is still writing.
func Run(ctx context.Context, o Options, agent string, in io.Reader, out io.Writer) {
	read := make(chan Event, 1)
	go func() {
		defer close(read)
		if e, err := Read(in); err == nil {
			read <- e
		}
	}()
	var e Event
	var there bool
	select {
	case e, there = <-read:
	case <-ctx.Done():
	}
	if !there || agent == "" {
		return
	}
	s, err := o.server()
	if err != nil {
		o.Spool.add(spooled{agent, e.doorbell()})
		return
	}
	answer, err := s.send(ctx, agent, e, false)
	switch {
	case errors.Is(err, errAway):
		o.Spool.add(spooled{agent, e.doorbell()})
		return
	case err != nil: // the server refuses it, and will do so again
		return
	}
	if len(bytes.TrimSpace(answer)) > 0 {
		_, _ = out.Write(answer)
	}
	o.resend(ctx, s)
}

// resend sends what is in the spool, and puts back what the server does not take.
func (o Options) resend(ctx context.Context, s *server) {
	list, done := o.Spool.take()
	for i, e := range list {
		if i == maxResent || ctx.Err() != nil {
			o.Spool.add(list[i:]...)
			break
		}
		if _, err := s.send(ctx, e.Agent, e.Event, true); errors.Is(err, errAway) {
			o.Spool.add(list[i:]...)
			break
		}
	}
	done()
}

var (
	errAway    = errors.New("the server is away")
	errRefused = errors.New("the server refuses the event")
)

// deniedError has the answer to a token that is not valid or may not write.
type deniedError struct{ answer []byte }

func (e *deniedError) Error() string {
	var problem struct {
		Detail string `json:"detail"`
	}
	if json.Unmarshal(e.answer, &problem) == nil && problem.Detail != "" {
		return problem.Detail
	}
	return "the server denies access"
}

// Denied returns why the server takes no event of a hook, "" if it takes them or does not answer. It sends an event without
// a session, with which the server does nothing.
func Denied(ctx context.Context, o Options, agent string) string {
	s, err := o.server()
	if err != nil {
		return ""
	}
	_, err = s.send(ctx, agent, Event{}, true)
	if denied := (*deniedError)(nil); errors.As(err, &denied) {
		return denied.Error()
	}
	return ""
}

type server struct {
	Options
	http http.Client
}

func (o Options) server() (*server, error) {
	s := &server{Options: o}
	if o.Token == "" && o.TokenFile != "" {
		raw, err := os.ReadFile(o.TokenFile)
		if err != nil {
			return nil, err
		}
		s.Token = strings.TrimSpace(string(raw))
	}
	if o.CAFile != "" {
		raw, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(raw)
		s.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	}
	return s, nil
}

// send posts an event. If the answer is errAway, the same event may succeed later.
func (s *server) send(ctx context.Context, agent string, e Event, late bool) ([]byte, error) {
	query := url.Values{}
	if s.Tenant != "" {
		query.Set("tenant", s.Tenant)
	}
	if late {
		query.Set("late", "true")
	}
	body, err := json.Marshal(e)
	if err != nil {
		return nil, errRefused
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(s.URL, "/")+"/v1/hooks/"+url.PathEscape(agent)+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, errRefused
	}
	request.Header.Set("Content-Type", "application/json")
	if s.Token != "" {
		request.Header.Set("Authorization", "Bearer "+s.Token)
	}
	response, err := s.http.Do(request)
	if err != nil {
		return nil, errAway
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil || response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests:
		return nil, errAway
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		return nil, &deniedError{answer}
	case response.StatusCode >= 300 || len(answer) > maxAnswer:
		return nil, errRefused
	}
	return answer, nil
}
