package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mneme.dev/mneme/internal/codeindex"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/scopes"
)

// IndexCmd indexes the code of a project.
type IndexCmd struct {
	Path        string `arg:"" help:"A folder; in a repository, that part of it." complete:"directory"`
	Project     string `help:"The project that the code is of. Defaults to the repository that the folder is in, else to the folder." placeholder:"NAME"`
	Again       bool   `help:"Begin a new index if the project's was erased."`
	MaxFiles    int    `help:"Refuse to index more files than this." default:"${max_index_files}"`
	ListSkipped bool   `help:"Also list the files that are left out, and why."`
	DryRun      bool   `help:"Read and cut everything, but publish and remember nothing."`
	State       string `help:"File that remembers what was published. Defaults to one for each server, tenant and folder in ~/.local/state/mneme." placeholder:"FILE" complete:"file"`
	settings.Redacting
}

func (*IndexCmd) Help() string {
	return `Cuts the files of a project into functions, types and sections, and publishes them over HTTP to --url; this needs a token with the role write if the server requires one. Whatever a .gitignore or the core.excludesFile of git names, links, other repositories in the folder, binary and minified files and those over ` + fmt.Sprint(scopes.MaxFileBytes>>20) + ` MiB are left out. Secrets are replaced before anything leaves this machine.

Run it again after changes: it reads only files whose size or time has changed, and publishes only those whose text has changed. You can stop it at any time; the next run continues. If the server goes away or a quota is used up, it waits for up to 15 minutes and then continues. If PATH is a part of a repository that no longer exists, its files are removed from the index.

The files that are left out are counted by reason. "Of kinds it can't cut" (with --json: unknown) are files, such as images, whose names belong to no language that mneme knows; docs/code.md lists the languages. --list-skipped names all files that are left out. Folders that are left out whole are neither counted nor named.

An index that was erased accepts no more code, so that nothing of it comes back. --again begins a new one, named PROJECT#2, PROJECT#3 and so on, and makes that name the project's as mneme projects alias does; that needs the role operate. Later runs continue it without the flag. For a fresh index, erase the old one first: mneme erase conversation code:PROJECT.

The exit code is 1 if a file could not be read; the others are indexed.

Examples:

    mneme index .
    mneme index ~/src/cli --project cli --dry-run
    mneme code search "where are uploads retried"`
}

func (c *IndexCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	options, err := c.options(ctx, g)
	if err != nil {
		return err
	}
	bar := t.counter("indexing")
	if !c.DryRun {
		api, err := g.client()
		if err != nil {
			return err
		}
		_, release, err := claimed("index", options.State)
		if err != nil {
			return err
		}
		defer release()
		patience := t.patient(bar)
		var log *remoteLog
		if err := patience.Ask(ctx, func() (err error) {
			log, err = openRemoteLog(ctx, api)
			return err
		}); err != nil {
			return err
		}
		options.Log = importer.PatientLog{Log: log, Patience: patience}
		options.Known, options.Erased = api.indexed, api.erased
		if c.Again {
			options.Begin = func(ctx context.Context, name, project string) error {
				body, err := json.Marshal(map[string]any{"into": project})
				if err != nil {
					return err
				}
				_, err = api.raw(ctx, http.MethodPut, "/v1/projects/"+segment(name)+"/alias", nil, "application/json", body)
				return err
			}
		}
	}
	options.Progress = func(done, all int) {
		bar.ChangeMax(all)
		_ = bar.Set(done)
	}
	report, err := codeindex.Run(ctx, options)
	_ = bar.Clear()
	if errors.Is(err, codeindex.ErrMissing) {
		return &program.UsageError{Err: err}
	}
	if err != nil && report.Files == 0 && report.Removed == 0 { // it did not begin
		return err
	}
	return errors.Join(err, c.print(g, t, report))
}

// options returns what to index, without the log to publish to.
func (c *IndexCmd) options(ctx context.Context, g *Globals) (o codeindex.Options, err error) {
	rules, err := redactRules(c.Redacting)
	if err != nil {
		return o, err
	}
	folder, err := filepath.Abs(c.Path)
	if err != nil {
		return o, err
	}
	if c.MaxFiles < 1 {
		return o, usageError("--max-files: %d is not a number of files", c.MaxFiles)
	}
	if folder, err = realFolder(folder); err != nil {
		return o, err
	}
	root := checkoutOf(folder)
	below, err := filepath.Rel(root, folder)
	if err != nil {
		return o, err
	}
	o = codeindex.Options{
		Root: root, Below: strings.TrimPrefix(filepath.ToSlash(below), "."), Project: cmp.Or(c.Project, repositoryOf(root)), Tenant: g.Tenant,
		Redact: rules, MaxFiles: c.MaxFiles, ListSkipped: c.ListSkipped, DryRun: c.DryRun, State: c.State,
		Ignores: codeindex.UserIgnores(ctx, root), AnyCase: codeindex.IgnoresCase(ctx, root),
	}
	if o.State == "" {
		o.State, err = stateFile("index", strings.TrimRight(g.URL, "/"), g.Tenant, root, o.Project)
	}
	return o, err
}

// realFolder resolves the links of a folder. One that does not exist must have been a part of a repository.
func realFolder(folder string) (string, error) {
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		above, name := filepath.Split(folder)
		for above = filepath.Clean(above); ; above, name = filepath.Dir(above), filepath.Join(filepath.Base(above), name) {
			if info, err := os.Stat(above); err == nil && info.IsDir() {
				break
			}
			if above == filepath.Dir(above) {
				return "", err
			}
		}
		if above, err = filepath.EvalSymlinks(above); err != nil {
			return "", err
		}
		if _, err := os.Lstat(filepath.Join(checkoutOf(above), ".git")); err != nil {
			return "", usageError("%s: no such file or folder; name the folder of a project", folder)
		}
		return filepath.Join(above, name), nil
	case err != nil:
		return "", &program.UsageError{Err: err}
	case !info.IsDir():
		return "", usageError("%s is not a folder: name the folder of a project", folder)
	}
	return filepath.EvalSymlinks(folder)
}

// checkoutOf returns the folder with the repository or the worktree that a folder is in; without one, the folder.
func checkoutOf(folder string) string {
	for at := folder; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return folder
		}
	}
}

func (c *IndexCmd) print(g *Globals, t *terminal, r codeindex.Report) error {
	if g.JSON {
		return t.json(r)
	}
	verb := "indexed"
	if c.DryRun {
		verb = "would index"
	}
	lines := []string{fmt.Sprintf("%s %s with %s of %s; %s unchanged, %s removed", verb, counted(r.Indexed, "file"), counted(r.Scopes, "scope"), r.Project, number(r.Unchanged), number(r.Removed))}
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		n := r.Skipped[reason]
		switch reason {
		case "link", "long path":
			reasons = append(reasons, counted(n, reason))
		case string(scopes.Unknown):
			reasons = append(reasons, number(n)+" of kinds it can't cut")
		default: // such as empty
			reasons = append(reasons, number(n)+" "+reason)
		}
	}
	if len(reasons) > 0 {
		left := "left out: " + strings.Join(reasons, ", ")
		if !c.ListSkipped {
			left += "; --list-skipped names them"
		}
		lines = append(lines, left)
	}
	for _, f := range r.SkippedFiles {
		lines = append(lines, "    "+f.Path+": "+f.Reason)
	}
	if r.LeftOut > 0 {
		lines = append(lines, counted(r.LeftOut, "scope")+" over the limits of a file left out")
	}
	if r.Redacted > 0 {
		lines = append(lines, "secrets replaced in "+counted(r.Redacted, "scope"))
	}
	if r.Changing > 0 {
		lines = append(lines, counted(r.Changing, "file")+" changed while being read; run it again")
	}
	if r.Seconds > 0 {
		lines = append(lines, fmt.Sprintf("%.1f s, %s files/s", r.Seconds, number(int(float64(r.Files)/r.Seconds))))
	}
	return t.text(strings.Join(lines, "\n") + "\n")
}
