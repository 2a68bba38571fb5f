// Command context-api serves conversations, files and the context from the read
// models. It is configured by environment variables: context-api --help lists them.
package main

import (
	"io"
	"os"

	"mneme/internal/service"
	"mneme/internal/settings"
)

func main() { os.Exit(service.Program("context-api", usage, service.RunContextAPI)) }

func usage(w io.Writer) error {
	return settings.Usage(w, "context-api", "serves the HTTP API from the read models.", service.ContextAPIListen, &settings.API{})
}
