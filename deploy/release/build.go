package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sbom lists the modules, with their licenses. Without a serial number and a time it is the same
// each time.
var sbom = []string{"run", "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0", "mod", "-type", "application", "-json", "-licenses", "-std", "-noserial", "-notimestamp"}

// included are files of the repository that an archive holds in addition to the programs, by their names in the archive.
var included = map[string]string{
	"LICENSE":               "LICENSE",
	"nats/server.conf":      "deploy/nats/server.conf",
	"nats/permissions.conf": "deploy/nats/permissions.conf",
}

// units are those of Linux.
var units = []string{"mneme.service", "mneme@.service", "mneme.env", "mneme-backup.service", "mneme-backup.timer"}

// build makes the release of the commit that is checked out in a folder, and returns its files.
func build(ctx context.Context, repository, out string, targets []string) ([]string, error) {
	dir, err := os.MkdirTemp("", "mneme-release-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	source := filepath.Join(dir, "mneme")
	if _, err := run(ctx, repository, nil, "git", "clone", "--quiet", "--no-local", ".", source); err != nil {
		return nil, err
	}
	seconds, err := run(ctx, source, nil, "git", "show", "--no-patch", "--format=%ct")
	if err != nil {
		return nil, err
	}
	unix, err := strconv.ParseInt(strings.TrimSpace(seconds), 10, 64)
	if err != nil {
		return nil, err
	}
	made := time.Unix(unix, 0).UTC()

	if err := os.RemoveAll(out); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	var names []string
	version := ""
	for _, target := range targets {
		system, machine, ok := strings.Cut(target, "/")
		if !ok {
			return nil, fmt.Errorf("platform %q: not like linux/amd64", target)
		}
		bin := filepath.Join(dir, system+"-"+machine)
		environment := []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + machine, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0"}
		if _, err := run(ctx, source, environment, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", bin+"/", "./cmd/..."); err != nil {
			return nil, err
		}
		var files map[string]file
		if files, version, err = contents(ctx, source, bin, system == "linux"); err != nil {
			return nil, err
		}
		name := fmt.Sprintf("mneme-%s-%s-%s", version, system, machine)
		if err := writeArchive(filepath.Join(out, name+".tar.gz"), name, made, files); err != nil {
			return nil, err
		}
		names = append(names, name+".tar.gz")
	}
	list, err := run(ctx, source, []string{"GOFLAGS="}, "go", sbom...)
	if err != nil {
		return nil, err
	}
	name := "mneme-" + version + ".cdx.json"
	if err := os.WriteFile(filepath.Join(out, name), []byte(list), 0o644); err != nil {
		return nil, err
	}
	return sums(out, append(names, name))
}

// contents returns the files of an archive, and the version that Go stamped on the programs in bin.
func contents(ctx context.Context, source, bin string, linux bool) (map[string]file, string, error) {
	files := map[string]file{}
	for name, from := range included {
		files[name] = file{from: filepath.Join(source, from)}
	}
	if linux {
		for _, unit := range units {
			files["systemd/"+unit] = file{from: filepath.Join(source, "deploy/systemd", unit)}
		}
	}
	version := ""
	modules := map[string]bool{}
	programs, err := os.ReadDir(bin)
	if err != nil {
		return nil, "", err
	}
	for _, p := range programs {
		path := filepath.Join(bin, p.Name())
		files["bin/"+p.Name()] = file{from: path, program: true}
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, "", err
		}
		version = info.Main.Version
		for _, m := range info.Deps {
			modules[m.Path] = true
		}
	}
	if version == "" || version == "(devel)" {
		return nil, "", errors.New("the programs have no version: Go did not find the commit")
	}
	return files, version, addLicenses(ctx, source, modules, files)
}

// license matches the names of files in which modules keep theirs.
var license = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice)`)

// addLicenses adds the licenses of Go and of the modules that the programs contain, which most of these
// licenses ask for.
func addLicenses(ctx context.Context, source string, modules map[string]bool, files map[string]file) error {
	root, err := run(ctx, source, nil, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	list, err := run(ctx, source, []string{"GOFLAGS="}, "go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all")
	if err != nil {
		return err
	}
	for line := range strings.Lines("go\t" + root + list) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if module != "go" && !modules[module] {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		found := false
		for _, e := range entries {
			if e.Type().IsRegular() && license.MatchString(e.Name()) {
				files["licenses/"+module+"/"+e.Name()] = file{from: filepath.Join(dir, e.Name())}
				found = true
			}
		}
		if !found {
			return fmt.Errorf("%s has no license that could be passed on", module)
		}
	}
	return nil
}

// sums writes SHA256SUMS, and returns the paths of all files.
func sums(out string, names []string) (paths []string, err error) {
	slices.Sort(names)
	var list strings.Builder
	for _, name := range names {
		raw, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(raw), name)
		paths = append(paths, filepath.Join(out, name))
	}
	path := filepath.Join(out, "SHA256SUMS")
	return append(paths, path), os.WriteFile(path, []byte(list.String()), 0o644)
}

// run runs a command in a folder and returns what it prints.
func run(ctx context.Context, dir string, environment []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), environment...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("a release needs %s: %w", name, err)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return string(out), nil
}
