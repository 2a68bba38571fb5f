// Command ingestor follows the log and writes one read model. It is configured by
// environment variables: ingestor --help lists them.
package main

import (
	"os"

	"mneme/internal/service"
)

func main() { os.Exit(service.Program("ingestor", service.RunIngestor)) }
