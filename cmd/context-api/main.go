// Command context-api serves conversations, files and the context from the read
// models. It is configured by environment variables: context-api --help lists them.
package main

import (
	"os"

	"mneme/internal/service"
)

func main() { os.Exit(service.Program("context-api", service.RunContextAPI)) }
