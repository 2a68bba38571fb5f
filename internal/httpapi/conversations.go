package httpapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"mneme/events"
	"mneme/pkg/files"
	"mneme/pkg/graph"
)

// Conversation is a conversation as the API shows it.
type Conversation struct {
	ID              string             `json:"id"`
	Title           string             `json:"title"`
	Tags            []string           `json:"tags"`
	Status          string             `json:"status" enum:"active,archived"`
	Agent           string             `json:"agent,omitempty"`
	Model           string             `json:"model,omitempty"`
	Cwd             string             `json:"cwd,omitempty"`
	Project         string             `json:"project,omitempty"`
	Profile         string             `json:"profile,omitempty"`
	MaxContextChars int                `json:"max_context_chars,omitempty"`
	BranchedFrom    *events.BranchedAt `json:"branched_from,omitempty"`
	MessageCount    int                `json:"message_count"`
	TurnCount       int                `json:"turn_count" doc:"user messages"`
	StepCount       int                `json:"step_count" doc:"assistant messages"`
	ToolCallCount   int                `json:"tool_call_count"`
	ToolResultCount int                `json:"tool_result_count"`
	TotalChars      int                `json:"total_chars" doc:"code points of all message contents"`
	CreatedAt       string             `json:"created_at" doc:"producer's time of the first event that has one, RFC 3339; empty if none has"`
	UpdatedAt       string             `json:"updated_at" doc:"producer's time of the newest event that has one"`
	FirstSeq        uint64             `json:"first_seq"`
	LastSeq         uint64             `json:"last_seq"`
}

func show(c graph.Conversation) Conversation {
	tags := c.Tags
	if tags == nil {
		tags = []string{}
	}
	return Conversation{
		ID: c.ID.ID, Title: c.Title, Tags: tags, Status: c.Status, Agent: c.Agent, Model: c.Model, Cwd: c.Cwd, Project: c.Project,
		Profile: c.Profile, MaxContextChars: c.MaxContextChars, BranchedFrom: c.BranchedFrom,
		MessageCount: c.MessageCount, TurnCount: c.TurnCount, StepCount: c.StepCount, ToolCallCount: c.ToolCallCount,
		ToolResultCount: c.ToolResultCount, TotalChars: c.TotalChars, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
		FirstSeq: c.FirstSeq, LastSeq: c.LastSeq,
	}
}

// File is a touched file as the API shows it.
type File struct {
	Path  string `json:"path"`
	Kind  string `json:"kind" enum:"read,write,search,list" doc:"the strongest of its accesses: write, read, search, list"`
	Tool  string `json:"tool" doc:"tool of the latest access"`
	Turn  int    `json:"turn" doc:"turn of the latest access"`
	Seq   uint64 `json:"seq" doc:"sequence of the latest access"`
	Count int    `json:"count" doc:"accesses of all kinds"`
}

type listInput struct {
	TenantParam
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
	Cursor string `query:"cursor" doc:"next_cursor of the page before"`
	Status string `query:"status" enum:"active,archived"`
}

type listOutput struct {
	Body struct {
		Conversations []Conversation `json:"conversations" doc:"the one with the newest event first"`
		NextCursor    string         `json:"next_cursor,omitempty" doc:"there is more: ask with this cursor"`
	}
}

// ConversationParam names a conversation.
type ConversationParam struct {
	TenantParam
	ID string `path:"id" doc:"the conversation id, percent-encoded"`
}

func (p *ConversationParam) id() events.ConversationID {
	return events.ConversationID{Tenant: p.Tenant, ID: p.ID}
}

// AsOfParam asks for the past.
type AsOfParam struct {
	AsOf uint64 `query:"as_of" doc:"answer as of this sequence of the log; 0 is now"`
}

func (p AsOfParam) seq() uint64 {
	if p.AsOf == 0 {
		return graph.Latest
	}
	return p.AsOf
}

type showInput struct {
	ConversationParam
	AsOfParam
	WaitParams
}

type showOutput struct{ Body Conversation }

type filesInput struct {
	ConversationParam
	AsOfParam
	WaitParams
	Limit int  `query:"limit" minimum:"1" maximum:"10000" default:"200"`
	All   bool `query:"all" doc:"also temporary and generated files"`
}

type filesOutput struct {
	Body struct {
		Files []File `json:"files" doc:"the newest access first"`
	}
}

func (a *api) registerConversations(h huma.API) {
	huma.Register(h, operation("list-conversations", http.MethodGet, "/v1/conversations", "List conversations", "conversations", 422, 503), a.list)
	huma.Register(h, operation("show-conversation", http.MethodGet, "/v1/conversations/{id}", "Show a conversation", "conversations", 404, 422, 503, 504), a.show)
	huma.Register(h, operation("list-files", http.MethodGet, "/v1/conversations/{id}/files", "List the files that a conversation touched", "conversations", 404, 422, 503, 504), a.files)
}

func (a *api) list(ctx context.Context, in *listInput) (*listOutput, error) {
	before, err := decodeCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	g, err := a.Models.Graph()
	if err != nil {
		return nil, a.problem(err)
	}
	found, err := g.Conversations(ctx, in.Tenant, graph.ConversationQuery{Limit: in.Limit, Before: before, Status: in.Status})
	if err != nil {
		return nil, a.problem(err)
	}
	out := &listOutput{}
	out.Body.Conversations = make([]Conversation, len(found.Rows))
	for i, c := range found.Rows {
		out.Body.Conversations[i] = show(c)
	}
	if found.Next != 0 {
		out.Body.NextCursor = encodeCursor(found.Next)
	}
	return out, nil
}

func (a *api) show(ctx context.Context, in *showInput) (*showOutput, error) {
	g, err := a.Models.Graph()
	if err != nil {
		return nil, a.problem(err)
	}
	if err := a.await(ctx, in.id(), in.WaitParams, in.AsOfParam, graphModel(g)); err != nil {
		return nil, a.problem(err)
	}
	c, err := g.Conversation(ctx, in.id(), in.seq())
	if err != nil {
		return nil, a.problem(err)
	}
	return &showOutput{Body: show(c)}, nil
}

// both gives the two read models, once they have applied what is asked for.
func (a *api) both(ctx context.Context, id events.ConversationID, wait WaitParams, past AsOfParam) (graph.Reader, graph.FilesReader, error) {
	g, err := a.Models.Graph()
	if err != nil {
		return nil, nil, err
	}
	f, err := a.Models.Files()
	if err != nil {
		return nil, nil, err
	}
	return g, f, a.await(ctx, id, wait, past, graphModel(g), filesModel(f))
}

func (a *api) files(ctx context.Context, in *filesInput) (*filesOutput, error) {
	g, f, err := a.both(ctx, in.id(), in.WaitParams, in.AsOfParam)
	if err != nil {
		return nil, a.problem(err)
	}
	if _, err := g.Conversation(ctx, in.id(), in.seq()); err != nil {
		return nil, a.problem(err)
	}
	accesses, err := f.Files(ctx, in.id(), graph.FileQuery{AsOf: in.AsOf, Limit: 4 * in.Limit})
	if err != nil {
		return nil, a.problem(err)
	}
	out := &filesOutput{}
	out.Body.Files = touched(accesses, in.All, in.Limit)
	return out, nil
}

var excluded = files.Exclude(files.DefaultExclusions)

// touched makes the API's rows of accesses.
func touched(accesses []graph.FileAccess, all bool, limit int) []File {
	list := []File{}
	for _, f := range graph.MergeByPath(accesses) {
		if len(list) < limit && (all || !excluded(f.Path)) {
			list = append(list, File{Path: f.Path, Kind: f.Strongest.Kind, Tool: f.Latest.Tool, Turn: f.Latest.Turn, Seq: f.Latest.Seq, Count: f.Count})
		}
	}
	return list
}

func encodeCursor(seq uint64) string {
	return base64.RawURLEncoding.EncodeToString([]byte("s" + strconv.FormatUint(seq, 10)))
}

func decodeCursor(cursor string) (uint64, error) {
	if cursor == "" {
		return 0, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if digits, ok := strings.CutPrefix(string(raw), "s"); err == nil && ok {
		if seq, err := strconv.ParseUint(digits, 10, 63); err == nil && seq > 0 {
			return seq, nil
		}
	}
	return 0, huma.Error422UnprocessableEntity("the cursor is not one that this API gave", &huma.ErrorDetail{Location: "query.cursor", Message: "not a cursor", Value: cursor})
}
