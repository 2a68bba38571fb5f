package neo4jdeploy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Line is a line of Neo4j releases that mneme supports.
type Line string

const (
	LTS     Line = "lts"     // 5.26, with long-term support; deploy this one
	Current Line = "current" // the newest features, to prepare for the next LTS
)

// Versions returns the line's versions, the preferred one first. Not every patch release
// is on Maven Central and its mirrors; these were.
func (l Line) Versions() []string {
	switch l {
	case LTS:
		return []string{"5.26.30", "5.26.25", "5.26.24", "5.26.12", "5.26.1"}
	case Current:
		return []string{"2026.09.0", "2026.04.0", "2026.02.2", "2025.11.2"}
	default:
		return nil
	}
}

// Fetched returns the folder where [Fetch] put the jars of a line, or [ErrNotFetched].
func Fetched(cache string, line Line) (jars string, err error) {
	note, err := os.ReadFile(noteFile(cache, line))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	wanted, got, _ := strings.Cut(strings.TrimSpace(string(note)), " ")
	if len(line.Versions()) == 0 || wanted != line.Versions()[0] {
		return "", fmt.Errorf("%w: the line %q is not in %s", ErrNotFetched, line, cache)
	}
	if jars, err = filepath.Abs(filepath.Join(cache, got)); err != nil {
		return "", err
	}
	_, err = Version(jars)
	return jars, err
}

// noteFile records a line's preferred version and the version actually fetched. So a
// version missing from a mirror is not requested again until there is a newer one.
func noteFile(cache string, line Line) string { return filepath.Join(cache, string(line)) }

func (l Line) note(cache, got string) error {
	return os.WriteFile(noteFile(cache, l), []byte(l.Versions()[0]+" "+got+"\n"), 0o644)
}

// Version returns the version of the Neo4j in a folder of jars, "5.26.30", or
// [ErrNotFetched].
func Version(jars string) (string, error) {
	found, err := filepath.Glob(filepath.Join(jars, "neo4j-[0-9]*.jar"))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%w: %d files neo4j-VERSION.jar in %s, there must be one", ErrNotFetched, len(found), jars)
	}
	name := strings.TrimSuffix(filepath.Base(found[0]), ".jar")
	return strings.TrimPrefix(name, "neo4j-"), nil
}

// isFive tells the LTS line from the versions named after years that followed it.
func isFive(version string) bool { return strings.HasPrefix(version, "5.") }
