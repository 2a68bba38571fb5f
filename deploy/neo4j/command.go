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

// command is the server's command line. Neo4j's start script makes nearly the same one,
// but is not among the jars.
func (c Config) command(java java, version string) (*exec.Cmd, error) {
	main, err := mainClass(c.Jars, version)
	if err != nil {
		return nil, err
	}
	args := append(c.tuning(),
		fmt.Sprintf("-Xms%dm", c.HeapMiB), fmt.Sprintf("-Xmx%dm", c.HeapMiB),
		"-XX:-OmitStackTraceInFastThrow",
		"-XX:+ExitOnOutOfMemoryError", // a server that has lost a thread answers some queries and hangs on others
		"-XX:+DisableExplicitGC",
		"-Djava.awt.headless=true", "-Dfile.encoding=UTF-8", "-Dlog4j2.disable.jmx=true",
		"-Dio.netty.tryReflectionSetAccessible=true", // free buffers at once
		"--add-opens=java.base/java.nio=ALL-UNNAMED",
		"--add-opens=java.base/java.io=ALL-UNNAMED",
		"--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
		"--enable-native-access=ALL-UNNAMED",
	)
	if java.major >= 24 { // Java warns without it, and later versions refuse
		args = append(args, "--sun-misc-unsafe-memory-access=allow")
	}
	args = append(args,
		"-cp", strings.Join([]string{c.confDir(), filepath.Join(c.Jars, "*")}, string(os.PathListSeparator)),
		main, "--home-dir="+c.Dir, "--config-dir="+c.confDir(), "--console-mode")
	return exec.Command(java.path, args...), nil
}

// small reports whether a server lives only as long as a test and must be fast at once. A
// larger server is tuned for sustained speed.
func (c Config) small() bool { return c.HeapMiB < 1024 }

// tuning returns Java's options. A small server uses the simple garbage collector (150 MB
// less) and the quick compiler (half the processor time to start), and does not verify classes
// that Maven has already checked (a tenth less processor time). It compiles methods ten times sooner
// than by default, because the interpreter of a young server uses many times more processor time
// than the compiler (a fifth less for a test that makes and reads both graphs). The quick compiler's default room
// for code, 48 MB, is full after some hundred statements; from then on the server discards code and
// compiles it again.
func (c Config) tuning() []string {
	if c.small() {
		return []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:CompileThresholdScaling=0.1", "-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote", "-XX:ReservedCodeCacheSize=192m"}
	}
	return []string{"-XX:+UseG1GC"}
}

// mainClass is the class that starts the server; its name changed after 5.26.
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
