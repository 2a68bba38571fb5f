// Command summarizer follows the log, writes the read model "summaries" and publishes the
// summaries that are due. Environment variables configure it; summarizer --help lists them.
package main

import (
	"os"

	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/service"
)

func main() { os.Exit(program.Main("summarizer", service.RunSummarizer)) }
