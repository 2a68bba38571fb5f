// Command ingestor follows the log and writes one read model. It is configured by
// environment variables: ingestor --help lists them.
package main

import (
	"io"
	"os"

	"mneme/internal/service"
	"mneme/internal/settings"
)

func main() { os.Exit(service.Program("ingestor", usage, service.RunIngestor)) }

func usage(w io.Writer) error {
	return settings.Usage(w, "ingestor", "projects the log into the read model \"graph\".", service.IngestorListen, &settings.Worker{})
}
