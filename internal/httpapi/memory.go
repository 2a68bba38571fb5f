package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/oklog/ulid/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/memory"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/window/projects"
)

const (
	// sourceOfMemory is the CloudEvents source of changes of a memory.
	sourceOfMemory = "mneme/memory"
	// maxMemoryBody is room for a file of the largest size, all of it escaped.
	maxMemoryBody = 1 << 20
	// memoryWait is how long a command waits for the changes before it.
	memoryWait = 5 * time.Second
	// memoryTries is how many times a command is carried out on the newest state before it gives up,
	// because another change came first each time.
	memoryTries = 20
)

// MemoryCommand is the input that a model gives to the memory tool.
type MemoryCommand struct {
	Command    string `json:"command" doc:"view, create, str_replace, insert, delete or rename"`
	Path       string `json:"path,omitempty" doc:"for every command but rename: a path below /memories"`
	ViewRange  []int  `json:"view_range,omitempty" maxItems:"2" nullable:"true" doc:"for view: first and last line, -1 for the end"`
	FileText   string `json:"file_text,omitempty" doc:"of create"`
	OldStr     string `json:"old_str,omitempty" doc:"of str_replace"`
	NewStr     string `json:"new_str,omitempty" doc:"of str_replace"`
	InsertLine int    `json:"insert_line,omitempty" doc:"for insert: the line after which the text goes, 0 for the beginning"`
	InsertText string `json:"insert_text,omitempty" doc:"of insert"`
	OldPath    string `json:"old_path,omitempty" doc:"of rename"`
	NewPath    string `json:"new_path,omitempty" doc:"of rename"`
}

// MemoryAnswer is what goes into the tool_result block for the model.
type MemoryAnswer struct {
	Content string `json:"content" doc:"what the tool answers"`
	IsError bool   `json:"is_error" doc:"the command failed: the content says why, and nothing was changed"`
	Seq     uint64 `json:"seq,omitempty" doc:"the sequence of the event that a change became; the log has acknowledged it"`
}

type viewMemoryInput struct {
	ProjectParam
	Path      string `query:"path" default:"/memories" doc:"a file or a folder"`
	ViewRange []int  `query:"view_range" maxItems:"2" doc:"first and last line of a file, -1 for the end"`
}

type useMemoryInput struct {
	ProjectParam
	Body MemoryCommand
}

func (a *api) registerMemory(h huma.API) {
	const path = "/v1/projects/{project}/memory"
	view := operation("view-memory", http.MethodGet, path, "Read the memory of a project", "projects", 422, 503, 504)
	view.Description = "What the command `view` of the memory tool answers: a file with numbered lines, or the list of a folder."
	serve(a, h, view, a.viewMemory)
	use := operation("use-memory", http.MethodPost, path, "Carry out a command of the memory tool", "projects", 413, 415, 422, 503, 504, 507)
	use.Description = "The six commands of the memory tool of Anthropic's API (`memory_20250818`) over the files of a project. The body is the input that the model gives to the tool, content and is_error go into the `tool_result`. " +
		"A change is an event: it is answered once the log has acknowledged it, and the next command sees it. The files in /memories/recorded are generated from what mneme has recorded, and are read-only. " +
		"A file has at most 64 KiB, a memory at most 256 files."
	use.MaxBodyBytes = maxMemoryBody
	serve(a, h, use, a.useMemory)
}

func (a *api) viewMemory(ctx context.Context, in *viewMemoryInput) (*output[MemoryAnswer], error) {
	return a.memory(ctx, in.ProjectParam, memory.Command{Command: memory.View, Path: in.Path, ViewRange: in.ViewRange})
}

func (a *api) useMemory(ctx context.Context, in *useMemoryInput) (*output[MemoryAnswer], error) {
	grant := access.Of(ctx)
	change := access.Need{Role: access.Write, Scope: access.InTenant}
	if in.Body.Command != memory.View && grant != nil && !change.Allows(grant.Rights) {
		return nil, forbidden(missing(change, grant), "body.command")
	}
	return a.memory(ctx, in.ProjectParam, memory.Command(in.Body))
}

// memory carries out a command.
func (a *api) memory(ctx context.Context, in ProjectParam, c memory.Command) (*output[MemoryAnswer], error) {
	var (
		seq     uint64
		content string
		err     error
	)
	for try := range memoryTries {
		var m *projectMemory
		if m, err = a.openMemory(ctx, in, c, try == 0); err != nil {
			break
		}
		var change *events.MemoryChanged
		if content, change, err = m.folder.Run(ctx, c); err != nil || change == nil {
			break
		}
		if seq, err = a.changeMemory(ctx, m, change, try == 0); !errors.Is(err, eventlog.ErrConflict) {
			break
		}
	}
	var refused memory.Refused
	switch {
	case errors.As(err, &refused):
		return &output[MemoryAnswer]{MemoryAnswer{Content: refused.Error(), IsError: true}}, nil
	case errors.Is(err, eventlog.ErrConflict):
		return nil, busy()
	case err != nil:
		return nil, err
	}
	return &output[MemoryAnswer]{MemoryAnswer{Content: content, Seq: seq}}, nil
}

// projectMemory is the memory of a project as of a moment.
type projectMemory struct {
	id      events.ConversationID
	project string
	known   bool   // its conversation exists
	last    uint64 // the sequence of its newest change in the log
	folder  *memory.Folder
}

// openMemory reads the memory of a project once every change before now is applied. The recorded files are made only for
// commands that show them. The first call of a request waits for a place for reads, which the request then holds.
func (a *api) openMemory(ctx context.Context, in ProjectParam, c memory.Command, first bool) (*projectMemory, error) {
	r, model, err := a.pins(ctx).Projects(ctx)
	if err != nil {
		return nil, err
	}
	p, err := project.Find(ctx, r, in.Tenant, in.Project, graph.Latest)
	if err != nil {
		return nil, err
	}
	m := &projectMemory{id: events.ConversationID{Tenant: in.Tenant, ID: project.Conversation(events.MemoryPrefix, p.Name)}, project: p.Name}
	newest, err := a.Log.LastOfKind(ctx, m.id.Tenant, m.id.ID, events.Kind(events.TypeMemoryChanged))
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return nil, err
	}
	m.last = newest.Seq
	last, partition, err := a.Log.Last(ctx, m.id.Tenant, m.id.ID)
	if err != nil {
		return nil, err
	}
	if err := a.views.AwaitPartition(ctx, memoryWait, model, partition, last); err != nil {
		return nil, err
	}
	if first {
		if err := a.admitRead(ctx, in.Tenant); err != nil {
			return nil, err
		}
	}
	digests, err := r.Digests(ctx, []events.ConversationID{m.id}, graph.Latest)
	if err != nil {
		return nil, err
	}
	var written []project.MemoryFile
	if m.known = digests[0] != nil; m.known {
		written = digests[0].Memory
	}
	if c.Command == memory.View {
		made, asOf, err := recordedFiles(ctx, r, in.Tenant, p.Name, c.Path)
		m.folder = memory.NewFolder(written, made, asOf, a.memoryText)
		return m, err
	}
	if !m.known {
		held, err := r.Holders(ctx, []projection.Claim{{Conversation: m.id}})
		if err != nil {
			return nil, err
		}
		if tombstone, ok := held[0]; ok && tombstone.Content.IsZero() {
			return nil, memory.Refused("Error: The memory of this project was deleted, and cannot take new files.")
		}
	}
	m.folder = memory.NewFolder(written, nil, 0, a.memoryText)
	return m, nil
}

// recordedFiles makes the files of what is known about a project, and the sequence that they are as of, if a path shows them.
func recordedFiles(ctx context.Context, r project.Reader, tenant, name, path string) (made []memory.File, asOf uint64, err error) {
	if !project.Below(path, memory.Recorded) && strings.TrimSuffix(path, "/") != memory.Root {
		return nil, 0, nil
	}
	documents, asOf, err := projects.Documents(ctx, projects.Source{Projects: r}, projects.Request{Tenant: tenant, Project: name, AsOf: graph.Latest})
	for _, d := range documents {
		made = append(made, memory.File{Path: d.Name, Text: d.Text})
	}
	return made, asOf, err
}

// memoryText reads the text of a file from the event that wrote it.
func (a *api) memoryText(ctx context.Context, f memory.File) (string, error) {
	m, err := a.Log.Get(ctx, f.Seq)
	if errors.Is(err, eventlog.ErrNotFound) {
		return "", memory.Refused(fmt.Sprintf("Error: The text of %s/%s is lost: the log no longer has its event. Delete the file, and create it again.", memory.Root, f.Path))
	}
	if err != nil {
		return "", err
	}
	recorded, _, err := m.Decode()
	if err != nil {
		return "", err
	}
	if p, ok := recorded.Payload.(*events.MemoryChanged); ok && p.Content != nil {
		return *p.Content, nil
	}
	return "", fmt.Errorf("sequence %d has no text of a file", f.Seq)
}

// changeMemory stores a change, unless another one came first: then it returns eventlog.ErrConflict. The first try of a
// command counts against the tenant's quotas, for all of them.
func (a *api) changeMemory(ctx context.Context, m *projectMemory, change *events.MemoryChanged, first bool) (uint64, error) {
	if !m.known {
		start, err := events.New(m.id.ID, sourceOfMemory, "start", &events.ConversationStarted{Title: "Memory", Agent: "mneme", Project: m.project})
		if err != nil {
			return 0, err
		}
		start.Time = time.Now().UTC()
		if _, err := a.Log.Publish(ctx, m.id.Tenant, start); err != nil {
			return 0, err
		}
	}
	e, err := events.New(m.id.ID, sourceOfMemory, ulid.Make().String(), change)
	if err != nil {
		return 0, err
	}
	e.Time = time.Now().UTC()
	if first {
		if err := a.take(ctx, m.id.Tenant, e); err != nil {
			return 0, err
		}
	}
	ack, err := a.Log.PublishAfter(ctx, m.id.Tenant, e, events.Kind(events.TypeMemoryChanged), m.last)
	return ack.Seq, err
}
