package neo4jdeploy

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// java is an installed Java.
type java struct {
	path  string
	major int // 17, 21, 25
}

// javaFor returns the major versions of Java that a version of Neo4j runs on.
func javaFor(version string) []int {
	switch {
	case isFive(version):
		return []int{17, 21}
	case strings.HasPrefix(version, "2025.0"): // up to September
		return []int{21}
	default:
		return []int{21, 25}
	}
}

// findJava returns the first installed Java that the version of Neo4j runs on, or
// [ErrNoJava].
func findJava(ctx context.Context, version string) (java, error) {
	j, err := chooseJava(version, installedJavas(ctx))
	if ctx.Err() != nil { // no Java could answer
		return java{}, context.Cause(ctx)
	}
	return j, err
}

func chooseJava(version string, installed iter.Seq[java]) (java, error) {
	wanted := javaFor(version)
	var found []string
	for j := range installed {
		if slices.Contains(wanted, j.major) {
			return j, nil
		}
		found = append(found, fmt.Sprintf("Java %d (%s)", j.major, j.path))
	}
	if found == nil {
		found = []string{"none at all"}
	}
	return java{}, fmt.Errorf("%w: Neo4j %s needs Java %s; found: %s; install one (Debian, Ubuntu: apt-get install openjdk-%d-jre-headless), or set JAVA_HOME",
		ErrNoJava, version, either(wanted), strings.Join(found, ", "), wanted[0])
}

// either is "17 or 21".
func either(versions []int) string {
	words := make([]string, len(versions))
	for i, v := range versions {
		words[i] = strconv.Itoa(v)
	}
	return strings.Join(words, " or ")
}

// installedJavas yields the Javas in JAVA_HOME, in PATH and in the usual folders, in this
// order, each once. It runs a Java to get its version only when the caller reaches it.
func installedJavas(ctx context.Context) iter.Seq[java] {
	return func(yield func(java) bool) {
		seen := map[string]bool{}
		for _, path := range javaPaths() {
			path, err := filepath.EvalSymlinks(path)
			if err != nil || seen[path] {
				continue
			}
			seen[path] = true
			out, err := exec.CommandContext(ctx, path, "-version").CombinedOutput()
			if err != nil {
				continue
			}
			if major := javaMajor(string(out)); major > 0 && !yield(java{path, major}) {
				return
			}
		}
	}
}

func javaPaths() []string {
	var paths []string
	if home := os.Getenv("JAVA_HOME"); home != "" {
		paths = append(paths, filepath.Join(home, "bin", "java"))
	}
	if path, err := exec.LookPath("java"); err == nil {
		paths = append(paths, path)
	}
	home, _ := os.UserHomeDir()
	for _, pattern := range []string{
		"/usr/lib/jvm/*/bin/java",
		"/opt/java/*/bin/java",
		"/Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java",
		filepath.Join(home, ".sdkman/candidates/java/*/bin/java"),
	} {
		matches, _ := filepath.Glob(pattern) // only a bad pattern is an error
		paths = append(paths, matches...)
	}
	return paths
}

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// javaMajor reads what `java -version` prints; 0 if it cannot. Java 8 is 1, "1.8".
func javaMajor(printed string) int {
	match := javaVersion.FindStringSubmatch(printed)
	if match == nil {
		return 0
	}
	major, _ := strconv.Atoi(match[1])
	return major
}
