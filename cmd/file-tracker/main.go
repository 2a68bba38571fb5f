// Command file-tracker follows the log and writes one read model. It is configured by
// environment variables: file-tracker --help lists them.
package main

import (
	"os"

	"mneme/internal/service"
)

func main() { os.Exit(service.Program("file-tracker", service.RunFileTracker)) }
