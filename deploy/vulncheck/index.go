package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// index makes a database that govulncheck reads, of a folder of reports in the format OSV: the reports,
// and which modules they are about (https://go.dev/doc/security/vuln/database).
func index(reports, dir string) error {
	type vuln struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
	}
	modules := map[string][]vuln{}
	var newest time.Time
	files, err := filepath.Glob(filepath.Join(reports, "GO-*.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("no reports in " + reports)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var report struct {
			vuln
			Affected []struct {
				Package struct {
					Name string `json:"name"`
				} `json:"package"`
			} `json:"affected"`
		}
		if err := json.Unmarshal(raw, &report); err != nil {
			return err
		}
		if report.Modified.After(newest) {
			newest = report.Modified
		}
		about := map[string]bool{}
		for _, a := range report.Affected {
			about[a.Package.Name] = true
		}
		for module := range about {
			modules[module] = append(modules[module], report.vuln)
		}
	}
	type entry struct {
		Path  string `json:"path"`
		Vulns []vuln `json:"vulns"`
	}
	var list []entry
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		vulns := modules[path]
		slices.SortFunc(vulns, func(a, b vuln) int { return cmp.Compare(a.ID, b.ID) })
		list = append(list, entry{path, vulns})
	}
	if err := os.MkdirAll(filepath.Join(dir, "index"), 0o755); err != nil {
		return err
	}
	for name, value := range map[string]any{"db": map[string]time.Time{"modified": newest}, "modules": list} {
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "index", name+".json"), raw, 0o644); err != nil {
			return err
		}
	}
	return os.Symlink(reports, filepath.Join(dir, "ID"))
}
