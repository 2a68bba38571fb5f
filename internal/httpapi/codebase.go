package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/recall"
)

// CodeIndex is an index of a project's code.
type CodeIndex struct {
	Project string `json:"project"`
	Root    string `json:"root" doc:"the folder that was read, on the machine that read it"`
	Done    bool   `json:"done" doc:"false while the folder is being read"`
	Files   int    `json:"files,omitempty" doc:"number of files, when it was read to the end"`
	Seq     uint64 `json:"seq" doc:"sequence of the event that says so"`
}

func showIndex(s codebase.Scan) CodeIndex {
	return CodeIndex{Project: s.Project, Root: s.Root, Done: s.Done, Files: s.Files, Seq: s.Seq}
}

// FoundScope is a piece of code that a search found.
type FoundScope struct {
	Path      string       `json:"path" doc:"the file, from the root of the project"`
	Root      string       `json:"root" doc:"the folder of the index"`
	Name      string       `json:"name,omitempty" doc:"as in Store.Close"`
	Kind      string       `json:"kind" enum:"function,type,value,section,block"`
	Language  string       `json:"language"`
	StartLine int          `json:"start_line"`
	EndLine   int          `json:"end_line"`
	Seq       uint64       `json:"seq" doc:"sequence of the event that indexed the file"`
	Text      string       `json:"text" doc:"its beginning"`
	Score     float64      `json:"score"`
	Parts     recall.Parts `json:"parts" doc:"the summands of the score"`
}

type searchCodeInput struct {
	ProjectParam
	WaitAllParams
	AsOfParam
	Query    string `query:"query" required:"true" minLength:"1" maxLength:"100000" doc:"what to search for, in words or names"`
	Limit    int    `query:"limit" minimum:"1" maximum:"100" default:"10" doc:"maximum number of scopes"`
	MaxChars int    `query:"max_chars" minimum:"50" maximum:"10000" default:"500" doc:"maximum length of each text, in Unicode code points"`
}

type searchCodeOutput struct {
	Body struct {
		Indexes []CodeIndex  `json:"indexes" doc:"the indexes that were searched; none if nobody has run mneme index"`
		Scopes  []FoundScope `json:"scopes" doc:"best first"`
		Left    int          `json:"left_out,omitempty" doc:"scopes that were not searched, because the index is too large"`
	}
}

type indexedFilesInput struct {
	ProjectParam
	WaitAllParams
	After uint64 `query:"after" doc:"next_after of the previous page"`
	Limit int    `query:"limit" minimum:"1" maximum:"10000" default:"1000" doc:"maximum number of entries"`
}

// IndexedFile is what a file held from a sequence on.
type IndexedFile struct {
	Path    string `json:"path"`
	Hash    string `json:"hash" doc:"SHA-256 of its bytes"`
	Removed bool   `json:"removed,omitempty"`
	EventID string `json:"event_id"`
	Seq     uint64 `json:"seq"`
	Scopes  int    `json:"scopes"`
}

type indexedFilesOutput struct {
	Body struct {
		Index     *CodeIndex    `json:"index,omitempty" doc:"absent if there is none"`
		EventID   string        `json:"event_id,omitempty" doc:"of the event that says whether it is done"`
		Files     []IndexedFile `json:"files" doc:"in the order of the log; if a path has several entries, the last one counts"`
		NextAfter uint64        `json:"next_after,omitempty" doc:"where the next page begins; absent at the end"`
	}
}

func (a *api) registerCodebase(h huma.API) {
	if a.Cache != nil {
		search := operation("search-code", http.MethodGet, "/v1/projects/{project}/code/search", "Search the code of a project", "projects", 422, 503, 504)
		search.Description = "Functions, types and other pieces of the files that mneme index has read, ranked by their words, their names and their meaning."
		serve(a, h, search, a.searchCode)
		a.registerCodeScope(h)
	}
	list := operation("list-indexed-files", http.MethodGet, "/v1/projects/{project}/code/files", "List what files of a project are indexed", "projects", 422, 503, 504)
	list.Description = "Use the name with which the project was indexed. mneme index continues from this list if it has lost its own."
	serve(a, h, list, a.indexedFiles)
}

// codebase returns the read model "code" once it has applied what the request waits for.
func (a *api) codebase(ctx context.Context, wait WaitAllParams, past AsOfParam) (codebase.Reader, view.Model, error) {
	r, m, err := a.pins(ctx).Code(ctx)
	if err != nil {
		return nil, m, err
	}
	if err := a.views.AwaitAllAsOf(ctx, WaitParams(wait).at(past), m); err != nil {
		return nil, m, err
	}
	return r, m, nil
}

func (a *api) searchCode(ctx context.Context, in *searchCodeInput) (*searchCodeOutput, error) {
	r, m, err := a.codebase(ctx, in.WaitAllParams, in.AsOfParam)
	if err != nil {
		return nil, err
	}
	of, err := a.projects(ctx, in.Tenant, in.WaitAllParams, in.AsOfParam, m)
	if err != nil {
		return nil, err
	}
	p, err := project.Find(ctx, of, in.Tenant, in.Project, in.seq())
	if err != nil {
		return nil, err
	}
	found, err := a.Cache.SearchCode(ctx, r, m.Generation, view.IndexesOf(p), codebase.Query{Text: in.Query, AsOf: in.seq(), Limit: in.Limit}, in.Limit)
	if err != nil {
		return nil, err
	}
	out := &searchCodeOutput{}
	out.Body.Indexes, out.Body.Scopes, out.Body.Left = each(found.Indexes, showIndex), []FoundScope{}, found.Left
	for i, h := range found.Hits {
		out.Body.Scopes = append(out.Body.Scopes, FoundScope{
			Path: h.Path, Root: found.Indexes[found.Of[i]].Root, Name: h.Name, Kind: h.Kind, Language: h.Language, StartLine: h.Start, EndLine: h.End, Seq: h.Seq,
			Text: plain.Clip(plain.Lines(h.Text), in.MaxChars), Score: h.Score, Parts: h.Parts,
		})
	}
	return out, nil
}

func (a *api) indexedFiles(ctx context.Context, in *indexedFilesInput) (*indexedFilesOutput, error) {
	r, m, err := a.codebase(ctx, in.WaitAllParams, AsOfParam{})
	if err != nil {
		return nil, err
	}
	if err := a.unchangedList(ctx, m); err != nil {
		return nil, err
	}
	if err := a.admitRead(ctx, in.Tenant); err != nil {
		return nil, err
	}
	id := events.ConversationID{Tenant: in.Tenant, ID: project.Conversation(events.CodePrefix, in.Project)}
	out := &indexedFilesOutput{}
	out.Body.Files = []IndexedFile{}
	scan, err := r.Scanned(ctx, id, AsOfParam{}.seq())
	if err != nil {
		return nil, err
	}
	if scan != nil {
		out.Body.Index, out.Body.EventID = new(showIndex(*scan)), scan.EventID
	}
	list, err := r.Versions(ctx, id, codebase.VersionQuery{From: in.After, AsOf: AsOfParam{}.seq(), Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	for _, v := range list {
		out.Body.Files = append(out.Body.Files, IndexedFile{Path: v.Path, Hash: v.Hash, Removed: v.Removed, EventID: v.EventID, Seq: v.Seq, Scopes: len(v.Scopes)})
	}
	if len(list) == in.Limit {
		out.Body.NextAfter = list[len(list)-1].Seq + 1
	}
	return out, nil
}
