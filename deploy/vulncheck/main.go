// Command vulncheck looks for known vulnerabilities in the functions that the program mneme contains,
// which includes all packages of the other programs.
//
// The database of the Go project comes from the module proxy, like every other module, so this also runs
// where only a proxy can be reached. It exits with 1 if a module has a vulnerability, and with 3 if it
// could not look, so that nothing was checked. Vulnerabilities of Go itself depend on the Go that builds. They fail the
// check only with -go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

const (
	database = "golang.org/x/vulndb@"
	scanner  = "golang.org/x/vuln/cmd/govulncheck@v1.9.0"
	program  = "./cmd/mneme"
)

func main() {
	version := flag.String("db", "v0.0.0-20261105234957-e22db6528018", "version of "+database+"VERSION; latest for the newest")
	withGo := flag.Bool("go", false, "also fail for vulnerabilities of the Go that builds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "mneme-vulncheck-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	list, checked, err := look(ctx, dir, *version)
	_ = os.RemoveAll(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "NOT RUN: known vulnerabilities were not looked for:", err)
		os.Exit(3)
	}
	os.Exit(report(os.Stdout, list, checked, *withGo))
}

// look scans a build of the program, in a temporary folder, and returns what it contains, and the version
// of the database.
func look(ctx context.Context, dir, version string) ([]finding, string, error) {
	var module struct{ Dir, Version string }
	raw, err := output(ctx, dir, "go", "mod", "download", "-json", database+version)
	if err != nil {
		return nil, "", err
	}
	if err := json.Unmarshal(raw, &module); err != nil {
		return nil, "", err
	}
	if err := index(filepath.Join(module.Dir, "data", "osv"), dir); err != nil {
		return nil, "", err
	}
	binary := filepath.Join(dir, "mneme")
	if _, err := output(ctx, ".", "go", "build", "-ldflags=-w", "-o", binary, program); err != nil { // with symbols, but without debug information
		return nil, "", err
	}
	raw, err = output(ctx, ".", "go", "run", scanner, "-db", "file://"+filepath.ToSlash(dir), "-mode", "binary", "-format", "json", binary)
	if err != nil {
		return nil, "", err
	}
	list, err := contained(strings.NewReader(string(raw)))
	return list, module.Version, err
}

// finding is a vulnerability that the program contains.
type finding struct {
	ID, Module, Version, Fixed, Summary string
}

// contained returns, in the order in which they were found, the vulnerabilities with a function that is in
// the program.
func contained(messages io.Reader) (list []finding, err error) {
	summaries := map[string]string{}
	seen := map[string]bool{}
	decoder := json.NewDecoder(messages)
	for {
		var m struct {
			OSV *struct {
				ID      string `json:"id"`
				Summary string `json:"summary"`
			} `json:"osv"`
			Finding *struct {
				OSV   string `json:"osv"`
				Fixed string `json:"fixed_version"`
				Trace []struct {
					Module   string `json:"module"`
					Version  string `json:"version"`
					Function string `json:"function"`
				} `json:"trace"`
			} `json:"finding"`
		}
		switch err := decoder.Decode(&m); {
		case errors.Is(err, io.EOF):
			for i := range list {
				list[i].Summary = summaries[list[i].ID]
			}
			return list, nil
		case err != nil:
			return nil, err
		case m.OSV != nil:
			summaries[m.OSV.ID] = m.OSV.Summary
		case m.Finding != nil && len(m.Finding.Trace) > 0 && m.Finding.Trace[0].Function != "":
			place := m.Finding.Trace[0]
			if key := m.Finding.OSV + " " + place.Module; !seen[key] {
				seen[key] = true
				list = append(list, finding{ID: m.Finding.OSV, Module: place.Module, Version: place.Version, Fixed: m.Finding.Fixed})
			}
		}
	}
}

// standard is the module by whose name the database knows Go itself.
const standard = "stdlib"

// report prints the findings and returns the exit code.
func report(out io.Writer, list []finding, version string, withGo bool) (code int) {
	ofGo := 0
	for _, f := range list {
		fixed := "not fixed yet"
		if f.Fixed != "" {
			fixed = "fixed in " + f.Fixed
		}
		_, _ = fmt.Fprintf(out, "%s: %s@%s, %s: %s\n", f.ID, f.Module, f.Version, fixed, f.Summary)
		if f.Module == standard {
			ofGo++
		}
		if f.Module != standard || withGo {
			code = 1
		}
	}
	_, _ = fmt.Fprintf(out, "%d known vulnerabilities in modules, %d in Go itself (database %s)\n", len(list)-ofGo, ofGo, version)
	if ofGo > 0 && !withGo {
		_, _ = fmt.Fprintln(out, "those of Go are in what this Go builds: build with a newer one, as a release does")
	}
	return code
}

// output runs a command in a folder and returns what it prints.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, exit.Stderr, out)
	}
	return out, err
}
