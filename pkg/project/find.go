package project

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
)

// Limits of what is read of a project, however many conversations it has.
const (
	// MaxSessions is how many conversations a context is made of: the newest, and those that the query resembles.
	MaxSessions = 48
	// MaxEntries is how many of the newest entries are compared with the query.
	MaxEntries = 1_024
	// maxFolders is how many folders below the root of a repository belong to its project, if conversations work in
	// them that do not show the repository.
	maxFolders = 32
)

// Project is a project and the names that belong to it.
type Project struct {
	Tenant string
	Name   string
	Names  []string // sorted; Name itself is among them
	asOf   uint64
}

// AsOf returns the project with the same names, for reads of conversations as of another sequence.
func (p Project) AsOf(seq uint64) Project {
	p.asOf = seq
	return p
}

// aliases reads which projects are aliases of others, as of a sequence.
func aliases(ctx context.Context, r Reader, tenant string, asOf uint64) (map[string]string, error) {
	list, err := r.Digests(ctx, []events.ConversationID{{Tenant: tenant, ID: events.ProjectsConversation}}, asOf)
	if err != nil || list[0] == nil {
		return nil, err
	}
	into := make(map[string]string, len(list[0].Aliases))
	for _, a := range list[0].Aliases {
		into[a.Project] = a.Into
	}
	return into, nil
}

// maxHops ends a chain of aliases, which may be a circle.
const maxHops = 16

// follow returns the project that a name means.
func follow(into map[string]string, name string) string {
	for range maxHops {
		next, ok := into[name]
		if !ok {
			break
		}
		name = next
	}
	return name
}

// Find returns the project that a name means. The name may be that of a folder: then it means the project of the
// repository that the folder is in. Sessions says whether any conversation belongs to it.
func Find(ctx context.Context, r Reader, tenant, name string, asOf uint64) (Project, error) {
	name = Name(name)
	into, err := aliases(ctx, r, tenant, asOf)
	if err != nil {
		return Project{}, err
	}
	if name, err = home(ctx, r, tenant, name, into, asOf); err != nil {
		return Project{}, err
	}
	return whole(ctx, r, tenant, name, into, asOf)
}

// home returns the project that a name or a folder belongs to.
func home(ctx context.Context, r Reader, tenant, name string, into map[string]string, asOf uint64) (string, error) {
	if _, aliased := into[name]; aliased {
		return follow(into, name), nil
	}
	name, _ = fold(name)
	above := foldersAbove(name)
	if len(above) == 0 {
		return follow(into, name), nil
	}
	// The nearest repository wins: one may be inside another.
	roots, err := r.Names(ctx, tenant, NameQuery{Kind: KindRoot, Only: append([]string{name}, above...), AsOf: asOf})
	if err != nil {
		return "", err
	}
	for _, folder := range append([]string{name}, above...) {
		if slices.Contains(roots, folder) {
			name = folder
			break
		}
	}
	return follow(into, name), nil
}

// whole collects the names that belong to a project: itself, its aliases, and the folders of its repositories in
// which conversations work that do not show the repository.
func whole(ctx context.Context, r Reader, tenant, name string, into map[string]string, asOf uint64) (Project, error) {
	p := Project{Tenant: tenant, Name: name, Names: []string{name}, asOf: asOf}
	for alias := range into {
		if alias != name && follow(into, alias) == name {
			p.Names = append(p.Names, alias)
		}
	}
	roots, err := r.Names(ctx, tenant, NameQuery{Kind: KindRoot, Only: p.Names, AsOf: asOf})
	if err != nil {
		return p, err
	}
	for _, root := range roots {
		folders, err := below(ctx, r, tenant, root, asOf)
		if err != nil {
			return p, err
		}
		for _, folder := range folders {
			if _, aliased := into[folder]; !aliased && !slices.Contains(p.Names, folder) {
				p.Names = append(p.Names, folder)
			}
		}
	}
	slices.Sort(p.Names)
	return p, nil
}

// below lists the folders below the root of a repository, without those of repositories inside it.
func below(ctx context.Context, r Reader, tenant, root string, asOf uint64) ([]string, error) {
	q := NameQuery{Kind: KindIn, After: root + "/", Below: root + "/", AsOf: asOf, Limit: maxFolders}
	folders, err := r.Names(ctx, tenant, q)
	if err != nil || len(folders) == 0 {
		return nil, err
	}
	q.Kind = KindRoot
	inner, err := r.Names(ctx, tenant, q)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(folders, func(folder string) bool {
		return slices.ContainsFunc(inner, func(in string) bool { return folder == in || strings.HasPrefix(folder, in+"/") })
	}), nil
}

// Session is a conversation of a project.
type Session struct {
	ID events.ConversationID
	*Digest
	Fit float64 // how well it fits the query, at most 1; 0 without one
}

// Path returns the path of a file of the session as seen from the project.
func (s *Session) Path(p *Project, file string) string {
	if absolute(file) || s.Place.Root != "" {
		return file
	}
	if below, ok := strings.CutPrefix(s.Place.Folder, p.Name+"/"); ok { // the session worked in a folder of the repository
		return below + "/" + file
	}
	return file
}

// Sessions reads the newest conversations of a project and those whose beginnings fit a query, at most [MaxSessions]
// together, and its notes, however old they are; newest first, without the conversations except. The number of rows it reads does not
// depend on the size of the project.
func Sessions(ctx context.Context, r Reader, p Project, query []string, except ...string) ([]Session, error) {
	entries, err := r.Members(ctx, p.Tenant, MemberQuery{Kind: KindIn, Names: p.Names, AsOf: p.asOf, Limit: MaxEntries})
	if err != nil {
		return nil, err
	}
	var list []Session
	var words []string
	seen := map[string]bool{}
	for _, id := range except {
		seen[id] = true
	}
	for _, e := range entries {
		if !seen[e.Conversation.ID] {
			seen[e.Conversation.ID] = true
			list, words = append(list, Session{ID: e.Conversation}), append(words, e.Words)
		}
	}
	fits := fit(query, words)
	for i := range list {
		list[i].Fit = fits[i]
	}
	list = pick(list, len(query) > 0)
	for _, id := range notesOf(p) {
		if !slices.Contains(except, id) && !slices.ContainsFunc(list, func(s Session) bool { return s.ID.ID == id }) {
			list = append(list, Session{ID: events.ConversationID{Tenant: p.Tenant, ID: id}})
		}
	}
	ids := make([]events.ConversationID, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	digests, err := r.Digests(ctx, ids, p.asOf)
	if err != nil {
		return nil, err
	}
	var there []Session
	for i, s := range list {
		// a conversation that was deleted, or moved to another project, since this entry
		if digests[i] != nil && slices.Contains(p.Names, digests[i].Place.Name) {
			s.Digest = digests[i]
			there = append(there, s)
		}
	}
	slices.SortFunc(there, func(a, b Session) int { return cmp.Compare(b.LastSeq, a.LastSeq) })
	return there, nil
}

// beginnings is how often the notes of a project can begin again, see [Again], and still all count.
const beginnings = 4

// notesOf returns the ids that the notes of a project have, if there are any.
func notesOf(p Project) (ids []string) {
	for _, name := range p.Names {
		for n := range beginnings {
			ids = append(ids, Conversation(events.NotesPrefix, Again(name, n+1)))
		}
	}
	return ids
}

// pick keeps the newest half and those that fit best.
func pick(list []Session, asked bool) []Session {
	newest := MaxSessions
	if asked {
		newest = MaxSessions / 2
	}
	if len(list) <= newest {
		return list
	}
	kept, rest := list[:newest], slices.Clone(list[newest:])
	slices.SortStableFunc(rest, func(a, b Session) int { return cmp.Compare(b.Fit, a.Fit) })
	rest = slices.DeleteFunc(rest, func(s Session) bool { return s.Fit == 0 })
	return append(slices.Clone(kept), rest[:min(len(rest), MaxSessions-newest)]...)
}

// List lists projects by their names, sorted bytewise, at most limit after a name. Names that are aliases, and folders
// of a repository that another name stands for, are left out. next is the name to continue after, "" at the end.
func List(ctx context.Context, r Reader, tenant, after string, limit int, asOf uint64) (list []Project, next string, err error) {
	into, err := aliases(ctx, r, tenant, asOf)
	if err != nil {
		return nil, "", err
	}
	names, err := r.Names(ctx, tenant, NameQuery{Kind: KindIn, After: after, AsOf: asOf, Limit: limit})
	if err != nil {
		return nil, "", err
	}
	if len(names) == limit {
		next = names[len(names)-1]
	}
	above := map[string]bool{}
	for _, name := range names {
		for _, folder := range foldersAbove(name) {
			above[folder] = true
		}
	}
	roots, err := r.Names(ctx, tenant, NameQuery{Kind: KindRoot, Only: slices.AppendSeq(slices.Clone(names), maps.Keys(above)), AsOf: asOf})
	if err != nil {
		return nil, "", err
	}
	isRoot := make(map[string]bool, len(roots))
	for _, root := range roots {
		isRoot[root] = true
	}
	for _, name := range names {
		_, aliased := into[name]
		folded := !isRoot[name] && slices.ContainsFunc(foldersAbove(name), func(folder string) bool { return isRoot[folder] })
		if !aliased && !folded {
			list = append(list, Project{Tenant: tenant, Name: name, Names: []string{name}, asOf: asOf})
		}
	}
	return list, next, nil
}

// Newest reads the newest conversation of each project, in their order: nil for a project that no longer has any.
func Newest(ctx context.Context, r Reader, list []Project) ([]*Session, error) {
	var ids []events.ConversationID
	var of []int
	newest := make([]*Session, len(list))
	if len(list) == 0 {
		return newest, nil
	}
	q := MemberQuery{Kind: KindIn, AsOf: list[0].asOf, Each: newestEntries, Limit: newestEntries * len(list)}
	at, seen := map[string]int{}, map[events.ConversationID]bool{}
	for i, p := range list {
		q.Names, at[p.Name] = append(q.Names, p.Name), i
	}
	entries, err := r.Members(ctx, list[0].Tenant, q)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !seen[e.Conversation] {
			seen[e.Conversation] = true
			ids, of = append(ids, e.Conversation), append(of, at[e.Name])
		}
	}
	digests, err := r.Digests(ctx, ids, list[0].asOf)
	if err != nil {
		return nil, err
	}
	for k, d := range digests {
		at := &newest[of[k]]
		if d != nil && slices.Contains(list[of[k]].Names, d.Place.Name) && (*at == nil || (*at).LastSeq < d.LastSeq) {
			*at = &Session{ID: ids[k], Digest: d}
		}
	}
	return newest, nil
}

// newestEntries is how many entries of a project are read to find its newest conversation: more than one, because
// conversations move to other projects while their older entries stay.
const newestEntries = 4

// maxEntered is how many of the newest entries of a project a search considers.
const maxEntered = 4_096

// Entered returns the ids of the conversations that are or were in a project, those of its newest entries, newest
// first. [Among] says which of them still are. It is never nil.
func Entered(ctx context.Context, r Reader, p Project) ([]string, error) {
	entries, err := r.Members(ctx, p.Tenant, MemberQuery{Kind: KindIn, Names: p.Names, AsOf: p.asOf, Limit: maxEntered})
	ids, seen := []string{}, map[string]bool{}
	for _, e := range entries {
		if id := e.Conversation.ID; !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, err
}

// Holds reports whether a conversation with this place belongs to a project. Unlike the read model, it also answers for
// deleted conversations.
func Holds(ctx context.Context, r Reader, p Project, at Place) (bool, error) {
	if at.Name == "" || slices.Contains(p.Names, at.Name) {
		return at.Name != "", nil
	}
	of, err := Find(ctx, r, p.Tenant, at.Name, p.asOf)
	return of.Name == p.Name, err
}

// Among reports, for each of some conversations, whether it belongs to a project.
func Among(ctx context.Context, r Reader, p Project, ids []events.ConversationID) ([]bool, error) {
	digests, err := r.Digests(ctx, ids, p.asOf)
	if err != nil {
		return nil, err
	}
	in := make([]bool, len(ids))
	for i, d := range digests {
		in[i] = d != nil && slices.Contains(p.Names, d.Place.Name)
	}
	return in, nil
}

// Keep returns the rows whose conversations belong to a project, in their order, never nil. id returns the
// conversation of a row.
func Keep[T any](ctx context.Context, r Reader, p Project, rows []T, id func(*T) events.ConversationID) ([]T, error) {
	ids := make([]events.ConversationID, len(rows))
	for i := range rows {
		ids[i] = id(&rows[i])
	}
	in, err := Among(ctx, r, p, ids)
	if err != nil {
		return nil, err
	}
	kept := []T{}
	for i := range rows {
		if in[i] {
			kept = append(kept, rows[i])
		}
	}
	return kept, nil
}
