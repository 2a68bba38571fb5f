// Command ingestor follows the log and writes the read models "graph", "projects" and "code". Environment variables
// configure it; ingestor --help lists them.
package main

import (
	"os"

	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/worker"
)

func main() { os.Exit(program.Main("ingestor", worker.RunIngestor)) }
