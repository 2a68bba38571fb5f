// Command summarizer follows the log and writes one read model. It is configured by
// environment variables: summarizer --help lists them.
package main

import (
	"os"

	"mneme/internal/service"
)

func main() { os.Exit(service.Program("summarizer", service.RunSummarizer)) }
