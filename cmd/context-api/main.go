// Command context-api serves conversations, files and contexts from the read models.
// Environment variables configure it; context-api --help lists them.
package main

import (
	"os"

	"mneme.dev/mneme/internal/doctor"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/service"
)

func main() { os.Exit(program.Main("context-api", service.RunContextAPI(doctor.Serving))) }
