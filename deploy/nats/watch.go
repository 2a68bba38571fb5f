package natsdeploy

import "github.com/nats-io/nats.go/jetstream"

// Drain reads, in the background, the remaining updates of a watch whose context has ended: otherwise a goroutine of the
// client blocks forever. The client ends the watch itself; Stop would wait 5 seconds for a server that is down.
func Drain(watcher jetstream.KeyWatcher) {
	go func() {
		for range watcher.Updates() {
		}
	}()
}
