package neo4jdeploy

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// DefaultCache is the folder in the repository where the Makefile keeps fetched servers.
const DefaultCache = ".cache/neo4j"

//go:embed pom.xml
var pom []byte

// copyDependencies is the Maven goal that puts all jars into one folder.
const copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

// unreachable matches Maven's messages about a network failure, as opposed to a missing version.
var unreachable = regexp.MustCompile(`(?i)unknown host|name or service not known|name resolution|connection refused|network is unreachable|no route to host|timed out`)

// Fetch puts the jars of a line's first available version, about 130 MB, into
// cache/VERSION, where [Fetched] finds them. If they are there it only checks for Java.
// A folder of jars appears only when it is complete.
//
// It takes 10 seconds to a minute, more on a slow network, and says on log what it
// fetches. It returns [ErrNoJava] when no installed Java runs the server, before
// anything is fetched; [ErrNoMaven]; or [ErrNotResolved] with what Maven said.
func Fetch(ctx context.Context, cache string, line Line, log io.Writer) (jars string, err error) {
	if len(line.Versions()) == 0 {
		return "", fmt.Errorf("no line %q of Neo4j: there are %q and %q", line, LTS, Current)
	}
	if jars, err = Fetched(cache, line); err == nil {
		version, _ := Version(jars) // Fetched has checked that it is there
		_, err = findJava(ctx, version)
		return jars, err
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return "", err
	}
	for _, version := range line.Versions() {
		if _, err := findJava(ctx, version); err != nil {
			return "", err
		}
		jars = filepath.Join(cache, version)
		if _, err = Version(jars); err != nil {
			fmt.Fprintf(log, "Neo4j %s: fetching its jars with Maven\n", version)
			err = resolve(ctx, version, jars)
		}
		if err == nil {
			return jars, line.note(cache, version)
		}
		if !errors.Is(err, ErrNotResolved) || unreachable.MatchString(err.Error()) {
			return "", err
		}
		fmt.Fprintln(log, err)
	}
	return "", err
}

// complaint returns the line of Maven's output that names the error; advice follows it.
func complaint(out string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(ansi.Strip(out)), "\n")
	return strings.TrimPrefix(line, "[ERROR] ")
}

// resolve fetches one version into the folder.
func resolve(ctx context.Context, version, jars string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("%w: mvn fetches Neo4j's jars from Maven Central; install it (Debian, Ubuntu: apt-get install maven)", ErrNoMaven)
	}
	part := jars + ".new"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := os.MkdirAll(part, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(part)
	file := filepath.Join(part, "pom.xml")
	if err := os.WriteFile(file, pom, 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, mvn, "--batch-mode", "--quiet", "-Dstyle.color=never",
		"-Dmaven.wagon.http.connectionTimeout=15000", "-Daether.connector.connectTimeout=15000",
		"--file", file, "-Dneo4j.version="+version, copyDependencies,
		"-DincludeScope=runtime", "-DoutputDirectory="+part)
	cmd.WaitDelay = 5 * time.Second // mvn is a script, and its Java process holds the output open
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%w: version %s: mvn: %w: %s", ErrNotResolved, version, err, complaint(string(out)))
	}
	if err := os.Remove(file); err != nil {
		return err
	}
	if err := os.RemoveAll(jars); err != nil {
		return err
	}
	return os.Rename(part, jars)
}
