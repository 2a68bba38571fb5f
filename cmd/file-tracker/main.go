// Command file-tracker follows the log and writes the read models "files" and "insight". Environment
// variables configure it; file-tracker --help lists them.
package main

import (
	"os"

	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/worker"
)

func main() { os.Exit(program.Main("file-tracker", worker.RunFileTracker)) }
