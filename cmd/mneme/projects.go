package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"mneme.dev/mneme/internal/httpapi"
)

// projectNamed returns the name of a project as the server knows it. A name that begins with a dot is a folder of this
// machine, and means the repository that it is in, if it is in one.
func projectNamed(name string) (string, error) {
	if name == "." || name == ".." || strings.HasPrefix(name, "."+string(filepath.Separator)) || strings.HasPrefix(name, ".."+string(filepath.Separator)) {
		folder, err := filepath.Abs(name)
		return repositoryOf(folder), err
	}
	return name, nil
}

// repositoryOf returns the root of the git repository that a folder is in. For a linked worktree that is the root of
// the repository that it belongs to. Without a repository it returns the folder.
func repositoryOf(folder string) string {
	for at := folder; ; at = filepath.Dir(at) {
		git := filepath.Join(at, ".git")
		if info, err := os.Stat(git); err == nil && info.IsDir() {
			return at
		} else if err == nil {
			if raw, err := os.ReadFile(git); err == nil { // gitdir: /home/ada/cli/.git/worktrees/4
				linked := strings.TrimSpace(strings.TrimPrefix(string(raw), "gitdir:"))
				if root, _, ok := strings.Cut(filepath.ToSlash(linked), "/.git/worktrees/"); ok {
					if root = filepath.FromSlash(root); filepath.IsAbs(root) {
						return root
					}
					return filepath.Join(at, root)
				}
			}
			return at
		}
		if at == filepath.Dir(at) {
			return folder
		}
	}
}

type projectArg struct {
	Project string `arg:"" help:"The project: its name, or a folder; . is this one." complete:"directory"`
}

func (a projectArg) path(below string) (string, error) {
	name, err := projectNamed(a.Project)
	return "/v1/projects/" + segment(name) + below, err
}

// unknownProject returns what to tell a user about a project that the server does not know, and other errors unchanged.
func unknownProject(err error, project string, past pastFlags) error {
	var answered *answeredError
	if past.AsOf != 0 || !errors.As(err, &answered) || answered.status != http.StatusNotFound {
		return err
	}
	if name, err := projectNamed(project); err == nil {
		project = name
	}
	return errors.New(nothingOf(project))
}

// nothingOf says that no conversation belongs to a project, and what to do.
func nothingOf(project string) string {
	says := fmt.Sprintf("no conversation belongs to the project %s: mneme projects list shows the projects", project)
	if folder, err := os.Getwd(); err == nil && repositoryOf(folder) == project {
		if here := checkoutOf(folder); here != project { // a path does not show where its repository is
			says += fmt.Sprintf("\nSessions in this worktree count as a project of their own, %[1]s. To join the two: mneme projects alias %[1]s %[2]s --force", here, project)
		}
	}
	return says
}

// ProjectsListCmd lists projects.
type ProjectsListCmd struct {
	Limit int `help:"Maximum number of rows; 0 means all." default:"0"`
	pastFlags
	waitFlags
}

func (*ProjectsListCmd) Help() string {
	return `A conversation belongs to the project that it names, else to its repository, else to the repository or the folder that it works in.

Example:

    mneme projects list --json | jq -r '.[].name'`
}

func (c *ProjectsListCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	return showList(ctx, g, t, api, "/v1/projects", "projects", c.Limit, c.pastFlags.query().with(c.waitFlags.query()), func(list []httpapi.Project) error {
		rows := make([][]any, len(list))
		for i, p := range list {
			rows[i] = []any{p.Name, when(p.Newest.UpdatedAt), p.Newest.ID, p.Newest.Asked}
		}
		return t.table([]column{{Name: "PROJECT", Min: 20, End: true}, {Name: "UPDATED", Drop: 2}, {Name: "NEWEST", Min: 12, End: true, Drop: 1}, {Name: "ASKED", Min: 16, Drop: 3}}, rows)
	})
}

// ProjectsShowCmd shows a project.
type ProjectsShowCmd struct {
	projectArg
	Query string `help:"Also list older conversations that fit these words." placeholder:"TEXT"`
	pastFlags
	waitFlags
}

func (*ProjectsShowCmd) Help() string {
	return `Examples:

    mneme projects show .
    mneme projects show cli --query "upload test"`
}

func (c *ProjectsShowCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	path, err := c.path("")
	if err != nil {
		return err
	}
	body, err := api.raw(ctx, http.MethodGet, path, parameters{"query": c.Query}.with(c.pastFlags.query(), c.waitFlags.query()), "", nil)
	if err != nil {
		return unknownProject(err, c.Project, c.pastFlags)
	}
	if g.JSON {
		return t.rawJSON(body, false)
	}
	var p struct {
		Name          string                   `json:"name"`
		Names         []string                 `json:"names"`
		Conversations []httpapi.ProjectSession `json:"conversations"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	if t.isPerson() {
		t.say("%s: %s", p.Name, counted(len(p.Conversations), "conversation"))
		for _, name := range p.Names {
			if name != p.Name {
				t.say("also %s", name)
			}
		}
	}
	rows := make([][]any, len(p.Conversations))
	for i, s := range p.Conversations {
		state := ""
		if s.Unanswered {
			state = "unanswered"
		}
		rows[i] = []any{s.ID, s.Agent, s.TurnCount, when(s.UpdatedAt), state, s.Asked}
	}
	return t.table([]column{
		conversationColumn, {Name: "AGENT", Drop: 3}, {Name: "TURNS", Right: true, Drop: 2}, {Name: "UPDATED", Drop: 1}, {Name: "STATE", Drop: 4}, {Name: "ASKED", Min: 16},
	}, rows)
}

// ProjectsAliasCmd makes the name of a project an alias of another project.
type ProjectsAliasCmd struct {
	projectArg
	Into  string `arg:"" help:"The project that it belongs to from now on." complete:"directory"`
	Force bool   `help:"Do so even if no conversation belongs to one of them."`
}

func (*ProjectsAliasCmd) Help() string {
	return `From then on the conversations of the first project belong to the second. Contexts as of an earlier sequence do not change. A project to which no conversation belongs is refused, because its name may be mistyped. --force is for one that has no conversation yet, or only an index of its code.

Example:

    mneme projects alias /home/grace/cli /home/ada/cli`
}

func (c *ProjectsAliasCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	path, err := c.path("/alias")
	if err != nil {
		return err
	}
	into, err := projectNamed(c.Into)
	if err != nil {
		return err
	}
	if !c.Force {
		if err := c.known(ctx, g); err != nil {
			return err
		}
	}
	return g.change(ctx, t, http.MethodPut, path, fmt.Sprintf("%s is now %s: stored in", c.Project, into), nil, map[string]any{"into": into})
}

// known returns an error if no conversation belongs to one of the projects.
func (c *ProjectsAliasCmd) known(ctx context.Context, g *Globals) error {
	api, err := g.client()
	if err != nil {
		return err
	}
	for _, name := range []string{c.Project, c.Into} {
		if name, err = projectNamed(name); err != nil {
			return err
		}
		var answered *answeredError
		if _, err := api.raw(ctx, http.MethodGet, "/v1/projects/"+segment(name), nil, "", nil); errors.As(err, &answered) && answered.status == http.StatusNotFound {
			return fmt.Errorf("no conversation belongs to the project %s, so nothing was changed: mneme projects list shows the projects. If it has none yet, add --force", name)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// ProjectsUnaliasCmd removes an alias.
type ProjectsUnaliasCmd struct{ projectArg }

func (*ProjectsUnaliasCmd) Help() string {
	return `Example:

    mneme projects unalias /home/grace/cli`
}

func (c *ProjectsUnaliasCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	path, err := c.path("/alias")
	if err != nil {
		return err
	}
	return g.change(ctx, t, http.MethodDelete, path, c.Project+" is a project of its own again: stored in", nil, nil)
}
