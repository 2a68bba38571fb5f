package scopes_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mneme.dev/mneme/pkg/scopes"
)

// BenchmarkCut cuts files of Go's standard library, once by the parser and once as if they were C++.
func BenchmarkCut(b *testing.B) {
	var files [][]byte
	total := 0
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip(err)
	}
	root := filepath.Join(strings.TrimSpace(string(goroot)), "src", "net")
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		content, err := os.ReadFile(path)
		files, total = append(files, content), total+len(content)
		return err
	}); err != nil {
		b.Skip(err)
	}
	for _, name := range []string{"a.go", "a.cpp", "a.py"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(total))
			for b.Loop() {
				for _, content := range files {
					scopes.Cut(name, content)
				}
			}
			b.ReportMetric(float64(len(files)*b.N)/b.Elapsed().Seconds(), "files/s")
		})
	}
}
