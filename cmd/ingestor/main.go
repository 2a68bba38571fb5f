// Command ingestor follows the log and writes the read model "graph". Environment variables
// configure it; ingestor --help lists them.
package main

import (
	"os"

	"mneme.dev/mneme/internal/service"
)

func main() { os.Exit(service.Program("ingestor", service.RunIngestor)) }
