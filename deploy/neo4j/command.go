package neo4jdeploy

import (
	"archive/zip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// command is the server's command line. Neo4j's own start script would make nearly the
// same, but is not among the jars.
func (c Config) command(java java, version string) (*exec.Cmd, error) {
	main, err := mainClass(c.Jars, version)
	if err != nil {
		return nil, err
	}
	args := append(c.tuning(),
		fmt.Sprintf("-Xms%dm", c.HeapMiB), fmt.Sprintf("-Xmx%dm", c.HeapMiB),
		"-XX:-OmitStackTraceInFastThrow",
		"-XX:+ExitOnOutOfMemoryError", // a server that lost a thread answers some and hangs others
		"-XX:+DisableExplicitGC",
		"-Djava.awt.headless=true", "-Dfile.encoding=UTF-8", "-Dlog4j2.disable.jmx=true",
		"-Dio.netty.tryReflectionSetAccessible=true", // buffers that are freed at once
		"--add-opens=java.base/java.nio=ALL-UNNAMED",
		"--add-opens=java.base/java.io=ALL-UNNAMED",
		"--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
		"--enable-native-access=ALL-UNNAMED",
	)
	if java.major >= 24 { // warns of it otherwise, and later refuses
		args = append(args, "--sun-misc-unsafe-memory-access=allow")
	}
	args = append(args,
		"-cp", strings.Join([]string{c.confDir(), filepath.Join(c.Jars, "*")}, string(os.PathListSeparator)),
		main, "--home-dir="+c.Dir, "--config-dir="+c.confDir(), "--console-mode")
	return exec.Command(java.path, args...), nil
}

// small tells whether a server lives as long as a test, and is to be fast soon. A larger
// one is to be fast for long.
func (c Config) small() bool { return c.HeapMiB < 1024 }

// tuning is that of the Java. A small server has the simple garbage collector (150 MB
// less) and the quick compiler (half the processor time to start).
func (c Config) tuning() []string {
	if c.small() {
		return []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
	}
	return []string{"-XX:+UseG1GC"}
}

// mainClass is what the server is started by; its name has changed after 5.26.
func mainClass(jars, version string) (string, error) {
	jar, err := zip.OpenReader(filepath.Join(jars, "neo4j-"+version+".jar"))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotFetched, err)
	}
	defer jar.Close()
	for _, name := range []string{"org/neo4j/server/Neo4jCommunity", "org/neo4j/server/CommunityEntryPoint"} {
		if slices.ContainsFunc(jar.File, func(f *zip.File) bool { return f.Name == name+".class" }) {
			return strings.ReplaceAll(name, "/", "."), nil
		}
	}
	return "", fmt.Errorf("%w: neo4j-%s.jar has no class that starts a server", ErrNotFetched, version)
}
