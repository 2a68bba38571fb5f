package view

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
)

// IndexesOf returns the conversations that can hold indexes of a project's code.
func IndexesOf(p project.Project) (ids []events.ConversationID) {
	for _, name := range p.Names {
		ids = append(ids, events.ConversationID{Tenant: p.Tenant, ID: project.Conversation(events.CodePrefix, name)})
	}
	return ids
}

// ScopeQuery names a piece of indexed code, by its name, by a file and a line in it, or by both.
type ScopeQuery struct {
	Name string // Store.Close, or Close
	File string // a path, or its last components
	Line int    // 0 for none
}

// Scope is a piece of code that an index holds.
type Scope struct {
	codebase.Hit
	Root  string // the folder of the index
	Index *codebase.Index
}

// Scopes returns the pieces of a project's code that a query may mean. indexed reports that there is an index of it.
func (c *Cache) Scopes(ctx context.Context, r codebase.Reader, generation int, p project.Project, q ScopeQuery) (list []Scope, indexed bool, err error) {
	for _, id := range IndexesOf(p) {
		scan, err := r.Scanned(ctx, id, graph.Latest)
		if err != nil {
			return nil, false, err
		}
		if scan == nil {
			continue
		}
		indexed = true
		x, err := c.Code(ctx, r, generation, id)
		if err != nil {
			return nil, false, err
		}
		for _, h := range q.in(x, scan.Root) {
			list = append(list, Scope{h, scan.Root, x})
		}
	}
	return list, indexed, nil
}

// in returns the scopes of an index that the query may mean.
func (q *ScopeQuery) in(x *codebase.Index, root string) (list []codebase.Hit) {
	file := q.File
	if below, err := filepath.Rel(root, file); err == nil && filepath.IsAbs(file) {
		if file = filepath.ToSlash(below); strings.HasPrefix(file, "../") { // the index was made in another checkout
			if file = x.Within(q.File, graph.Latest); file == "" {
				return nil
			}
		}
	}
	if q.Name != "" {
		list = x.Named(q.Name, graph.Latest)
		if file != "" {
			isFile := graph.FileMatcher(file)
			list = slices.DeleteFunc(list, func(h codebase.Hit) bool {
				return !isFile(h.Path) || q.Line != 0 && (q.Line < h.Start || q.Line > h.End)
			})
		}
		if whole := func(h codebase.Hit) bool { return h.Name == q.Name }; slices.ContainsFunc(list, whole) {
			list = slices.DeleteFunc(list, func(h codebase.Hit) bool { return !whole(h) })
		}
		return list
	}
	for _, path := range x.Ending(file, graph.Latest) {
		around := x.At(path, q.Line, q.Line, graph.Latest)
		if i := slices.IndexFunc(around, func(h codebase.Hit) bool { return h.Name != "" }); i >= 0 {
			list = append(list, around[i])
		} else if len(around) > 0 {
			list = append(list, around[0])
		}
	}
	return list
}
