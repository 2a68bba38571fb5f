// Command file-tracker follows the log and writes the read model "files". Environment
// variables configure it; file-tracker --help lists them.
package main

import (
	"os"

	"mneme.dev/mneme/internal/service"
)

func main() { os.Exit(service.Program("file-tracker", service.RunFileTracker)) }
