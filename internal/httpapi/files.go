package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/window"
)

// File is a file that tools touched, as the API shows it.
type File struct {
	Path  string `json:"path"`
	Kind  string `json:"kind" enum:"read,write,search,list" doc:"the strongest of its accesses: write, read, search, list"`
	Tool  string `json:"tool" doc:"tool of the latest access"`
	Turn  int    `json:"turn" doc:"turn of the latest access"`
	Seq   uint64 `json:"seq" doc:"sequence of the latest access"`
	Count int    `json:"count" doc:"number of accesses of all kinds"`
}

// Directory is a directory with the files in it that tools touched.
type Directory struct {
	Path  string `json:"path"`
	Files []File `json:"files" doc:"newest access first"`
}

type filesInput struct {
	ConversationParam
	AsOfParam
	WaitParams
	Limit   int      `query:"limit" minimum:"1" maximum:"10000" default:"200"`
	All     bool     `query:"all" doc:"include temporary and generated files"`
	Kinds   []string `query:"kind,explode" enum:"write,read,search,list" maxItems:"4" doc:"only files whose strongest access is of this kind, or of any of these kinds if given more than once"`
	GroupBy string   `query:"group_by" enum:"directory" doc:"return directories with their files, newest access first"`
}

type filesOutput struct {
	Body struct {
		Files       []File      `json:"files,omitzero" doc:"newest access first"`
		Directories []Directory `json:"directories,omitzero" doc:"with group_by=directory, instead of files"`
	}
}

func (a *api) registerFiles(h huma.API) {
	serve(a, h, operation("list-files", http.MethodGet, "/v1/conversations/{id}/files", "List the files that a conversation touched", "conversations", 404, 422, 503, 504), a.files)
}

func (a *api) files(ctx context.Context, in *filesInput) (*filesOutput, error) {
	v, err := a.pins(ctx).OpenWithFiles(ctx, in.id(), in.at(in.AsOfParam))
	if err == nil {
		err = a.begin(ctx, v)
	}
	if err != nil {
		return nil, err
	}
	c, err := v.Graph().Conversation(ctx, in.id(), in.seq())
	if err != nil {
		return nil, err
	}
	list, err := in.read(ctx, v.Files(), in.id(), files.ExcludeOutside(c.Cwd, excluded))
	if err != nil {
		return nil, err
	}
	out := &filesOutput{}
	if in.GroupBy == "directory" {
		out.Body.Directories = directories(list)
	} else {
		out.Body.Files = list
	}
	return out, nil
}

// maxAccesses is the maximum number of accesses read for one answer.
const maxAccesses = 40_000

// read finds the requested files. It cannot know in advance how many accesses to read:
// later accesses may be of other files, and one file has up to four kinds.
func (in *filesInput) read(ctx context.Context, f window.Files, id events.ConversationID, excluded func(path string) bool) ([]File, error) {
	for n := 4 * in.Limit; ; n = min(4*n, maxAccesses) {
		accesses, err := f.Files(ctx, id, graph.FileQuery{AsOf: in.AsOf, Limit: n})
		if err != nil {
			return nil, err
		}
		list := []File{}
		for _, file := range graph.MergeByPath(accesses) {
			if len(list) < in.Limit && in.wants(file, excluded) {
				list = append(list, File{
					Path: file.Path, Kind: file.Strongest.Kind, Tool: file.Latest.Tool, Turn: file.Latest.Turn, Seq: file.Latest.Seq, Count: file.Count,
				})
			}
		}
		if len(list) == in.Limit || len(accesses) < n || n == maxAccesses {
			return list, nil
		}
	}
}

var excluded = files.Exclude(files.DefaultExclusions)

func (in *filesInput) wants(f graph.TouchedFile, excluded func(path string) bool) bool {
	return (in.All || !excluded(f.Path)) && (len(in.Kinds) == 0 || slices.Contains(in.Kinds, f.Strongest.Kind))
}

// directories groups files by directory and keeps their order.
func directories(list []File) []Directory {
	groups := []Directory{}
	at := map[string]int{}
	for _, f := range list {
		dir, _ := files.Split(f.Path)
		i, seen := at[dir]
		if !seen {
			i = len(groups)
			at[dir] = i
			groups = append(groups, Directory{Path: dir})
		}
		groups[i].Files = append(groups[i].Files, f)
	}
	return groups
}
