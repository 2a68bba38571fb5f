// Command summarizer follows the log, writes the read model "summaries" and publishes the
// summaries that are due. It is configured by environment variables: summarizer --help
// lists them.
package main

import (
	"os"

	"mneme/internal/service"
)

func main() { os.Exit(service.Program("summarizer", service.RunSummarizer)) }
