package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/capture"
	"mneme.dev/mneme/internal/hook"
	"mneme.dev/mneme/internal/hook/ring"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/harness"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/window"
	"mneme.dev/mneme/pkg/window/projects"
)

// maxHookBytes is the largest event of a hook: an agent that calls the server directly includes whole tool results.
const maxHookBytes = ring.MaxInput

// hookWithin is how long an agent that calls the server itself is held up; mneme-hook gives up much sooner, after
// [ring.Patience]. It is also the time-out with which mneme connect sets up hooks.
const hookWithin = 3 * time.Second

type hookInput struct {
	TenantParam
	AsOfParam
	Agent   string `path:"agent" enum:"claude-code,codex,gemini-cli,qwen-code,opencode,kilo,pi,kimi-code,hermes,droid,openclaw,cursor,copilot-cli,openhands" doc:"the agent that runs the hook"`
	Late    bool   `query:"late" doc:"the event is sent late, because the server did not answer before: the answer shows nothing"`
	RawBody []byte `contentType:"application/json"`
}

type hookOutput struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

type hooksInput struct {
	TenantParam
}

// Hooks says which hooks of coding agents have called.
type Hooks struct {
	Sessions []hook.Fired `json:"sessions" doc:"whose hooks have reached this server since it started, newest event first"`
	Capture  *Captured    `json:"capture,omitempty" doc:"what this server read of transcripts since it started; only for tokens of all tenants, because it names files"`
}

// Captured says what a server read of transcripts.
type Captured capture.Status

func (a *api) registerHooks(h huma.API) {
	op := operation("take-hook", http.MethodPost, "/v1/hooks/{agent}", "Report an event of a coding agent", "context", 413, 415, 422, 503, 504)
	op.Description = "The body is the JSON object that the agent gives its hooks. The server then reads the event's transcript; nothing of the body itself is stored. " +
		"The answer is what the agent's hook should print, in the agent's own format, or empty: at the start of a session the context of its project; at a prompt earlier messages that name a file " +
		"or identifier of the prompt, if there are any, and none twice in a session. If reading takes more than 3 seconds, it is empty."
	op.MaxBodyBytes = maxHookBytes
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}}}
	op.SkipValidateBody = true // the body is in the agent's format, and may have other members
	op.Responses = declareAnswer("What the hook is to print; empty for nothing", "application/json", &huma.Schema{})
	serve(a, h, op, a.takeHook)
	serve(a, h, operation("list-hooks", http.MethodGet, "/v1/hooks", "List the sessions whose hooks have fired", "operations", 422), a.listHooks)
}

func (a *api) takeHook(ctx context.Context, in *hookInput) (*hookOutput, error) {
	agent := hook.Find(in.Agent)
	event, err := ring.Decode(in.RawBody)
	if err != nil {
		return nil, huma.Error422UnprocessableEntity("the body is not the event of a hook: it must be a JSON object with hook_event_name and session_id")
	}
	within, cancel := context.WithTimeout(ctx, hookWithin)
	defer cancel()
	text, err := a.hooks.Take(within, &past{a, in.seq()}, in.Tenant, agent, event, in.Late)
	if err != nil && ctx.Err() == nil && (within.Err() != nil || errors.Is(err, view.ErrBusy)) {
		a.Logger.DebugContext(ctx, "a hook was shown nothing, because its agent waits", "agent", agent.Name, "event", event.Name, "error", err)
		text, err = "", nil // the event is taken, and an agent that is held up is worse than one that is shown nothing
	}
	if err != nil {
		return nil, err
	}
	return &hookOutput{"application/json", agent.Answer(event.Name, text)}, nil
}

func (a *api) listHooks(ctx context.Context, in *hooksInput) (*output[Hooks], error) {
	out := &output[Hooks]{}
	out.Body.Sessions = a.hooks.Fired(in.Tenant)
	if access.Everywhere(ctx) {
		out.Body.Capture = a.captured()
	}
	return out, nil
}

// captured says what was read of transcripts, nil if this process reads none.
func (a *api) captured() *Captured {
	if a.Captured == nil {
		return nil
	}
	return new(Captured(a.Captured()))
}

// past is what hooks can show, as of a sequence.
type past struct {
	*api
	asOf uint64
}

// open returns the readers of projects and messages.
func (p *past) open(ctx context.Context, tenant string) (project.Reader, graph.Reader, error) {
	g, ofGraph, err := p.pins(ctx).Graph(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, err := p.api.projects(ctx, tenant, WaitAllParams{}, AsOfParam{}, ofGraph)
	return r, g, err
}

// Project implements [hook.Past].
func (p *past) Project(ctx context.Context, tenant, folder, except string, maxChars int) (hook.Text, error) {
	r, g, err := p.open(ctx, tenant)
	if err != nil {
		return hook.Text{}, err
	}
	c, err := projects.Build(ctx, p.projectSource(r, g), projects.Request{
		Tenant: tenant, Project: folder, Except: except, MaxChars: maxChars, AsOf: p.asOf,
	})
	if errors.Is(err, graph.ErrNotFound) {
		return hook.Text{}, nil
	}
	if err != nil {
		return hook.Text{}, err
	}
	return hook.Text{Text: c.Markdown(), Seq: c.AsOf}, nil
}

// Story implements [hook.Past].
func (p *past) Story(ctx context.Context, tenant, conversation string, maxChars int) (hook.Text, error) {
	id := events.ConversationID{Tenant: tenant, ID: conversation}
	source, err := p.source(ctx, id, WaitParams{}, AsOfParam{}, needs{})
	if errors.Is(err, graph.ErrNotFound) {
		return hook.Text{}, nil
	}
	if err != nil {
		return hook.Text{}, err
	}
	source.Graph = talk{source.Graph}
	request := window.Request{Conversation: id, MaxChars: maxChars, Strategy: window.StrategyRecent}
	if p.asOf != graph.Latest {
		request.AsOf = p.asOf
	}
	c, err := p.build(ctx, source, request)
	if errors.Is(err, graph.ErrNotFound) {
		return hook.Text{}, nil
	}
	if err != nil {
		return hook.Text{}, err
	}
	return hook.Text{Text: c.Markdown(), Seq: c.AsOf}, nil
}

// talk reads a conversation without what the agent's program said in it, such as its rules or the text of a skill. After a
// compaction the program says that again by itself, and in a short story it would take the room of the conversation.
type talk struct{ window.Graph }

// Transcript implements [window.Graph].
func (t talk) Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) (kept []graph.Entry, err error) {
	if q.OldestFirst || q.Limit == 0 {
		return t.Graph.Transcript(ctx, id, q)
	}
	for most := q.Limit; ; q.Limit = most - len(kept) {
		list, err := t.Graph.Transcript(ctx, id, q)
		if err != nil {
			return nil, err
		}
		read := len(list)
		if read > 0 {
			q.Before = list[read-1].Position().Seq
		}
		kept = append(kept, slices.DeleteFunc(list, func(e graph.Entry) bool { return e.Message != nil && isProgram(e.Message) })...)
		if read < q.Limit || len(kept) == most { // fewer than asked for would mean that the conversation begins here
			return kept, nil
		}
	}
}

// isProgram reports whether an agent's program wrote a message, and not the model of another agent.
func isProgram(m *graph.Message) bool {
	wrote := m.Via == harness.OriginMeta || m.Role == "user" && m.Via == "" && harness.Wrote(m.Content.Text)
	return wrote && m.Speaker == ""
}

// searchedSessions is how many conversations of a project are searched at a prompt.
const searchedSessions = 4

// Said implements [hook.Past].
func (p *past) Said(ctx context.Context, tenant, folder, except, prompt string, limit int) ([]hook.Passage, uint64, error) {
	if p.Cache == nil {
		return nil, 0, nil
	}
	r, g, err := p.open(ctx, tenant)
	if err != nil {
		return nil, 0, err
	}
	found, err := project.Find(ctx, r, tenant, folder, p.asOf)
	if err != nil {
		return nil, 0, err
	}
	sessions, err := project.Sessions(ctx, r, found, project.QueryTerms(prompt), except)
	if err != nil {
		return nil, 0, err
	}
	sessions = slices.DeleteFunc(sessions, func(s project.Session) bool { return s.Fit == 0 })
	slices.SortStableFunc(sessions, func(a, b project.Session) int { return cmp.Compare(b.Fit, a.Fit) })
	sessions = sessions[:min(len(sessions), searchedSessions)]
	said, err := p.Cache.OfProjects(g).Said(ctx, sessions, prompt, p.asOf, limit)
	if err != nil {
		return nil, 0, err
	}
	inherited, err := graph.LineageOf(ctx, g, events.ConversationID{Tenant: tenant, ID: except}, p.asOf)
	if err != nil && !errors.Is(err, graph.ErrNotFound) {
		return nil, 0, err
	}
	seq := uint64(0)
	var list []hook.Passage
	for _, m := range said {
		if inherited != nil && inherited.Shows(m.Conversation, m.Seq) {
			continue
		}
		s := &sessions[slices.IndexFunc(sessions, func(s project.Session) bool { return s.ID == m.Conversation })]
		seq = max(seq, s.LastSeq)
		list = append(list, hook.Passage{
			Conversation: m.Conversation.ID, Seq: m.Seq, Text: m.Text, Files: filesOf(s, &found, m.Turn),
			Label: "[" + projects.ShortID(m.Conversation.ID) + ", turn " + strconv.Itoa(m.Turn) + "] " + strings.ToUpper(m.Role[:min(1, len(m.Role))]) + m.Role[min(1, len(m.Role)):],
		})
	}
	return list, seq, nil
}

// filesOf returns the files of a session, those of one turn first, then those that it wrote, then by use.
func filesOf(s *project.Session, p *project.Project, turn int) (paths []string) {
	list := slices.Clone(s.Files)
	weight := func(f *project.File) int {
		n := f.Reads + 4*f.Writes
		if f.Turn == turn {
			n += 1_000
		}
		return n
	}
	slices.SortStableFunc(list, func(a, b project.File) int { return cmp.Compare(weight(&b), weight(&a)) })
	for i := range list {
		paths = append(paths, filepath.ToSlash(s.Path(p, list[i].Path)))
	}
	return paths
}
