// Command release builds what is published of a commit: for each platform an archive with the
// programs, their licenses and what a server needs to run them; a list of all modules (SBOM); and
// SHA256SUMS.
//
// Everything is built from a fresh clone of HEAD, so nothing that is not committed gets in, and
// nothing depends on the folder or the time: the same commit and Go version give the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

func main() {
	out := flag.String("out", "bin/release", "folder of the release; it is replaced")
	targets := flag.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "platforms, comma separated")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	files, err := build(ctx, ".", *out, strings.Split(*targets, ","))
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	for _, f := range files {
		fmt.Println(f)
	}
}
