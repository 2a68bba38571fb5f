// Command faults runs mneme while the systems it depends on fail, on a schedule made from a seed,
// and checks whether anything is lost, doubled or out of order:
//
//	make faults SEED=1
//	go run ./test/faults run --seed 1 --faults 20 --events 20000 --duration 2m
//	go run ./test/faults check .faults/1
//
// Everything is real and runs in separate processes: nats-server, Neo4j, the programs.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
