// Command file-tracker follows the log and writes one read model. It is configured by
// environment variables: file-tracker --help lists them.
package main

import (
	"io"
	"os"

	"mneme/internal/service"
	"mneme/internal/settings"
)

func main() { os.Exit(service.Program("file-tracker", usage, service.RunFileTracker)) }

func usage(w io.Writer) error {
	return settings.Usage(w, "file-tracker", "keeps the files that conversations touched.", service.FileTrackerListen, &settings.Worker{})
}
