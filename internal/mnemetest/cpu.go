package mnemetest

import (
	"syscall"
	"testing"
	"time"
)

// ReportCPU makes a benchmark report the processor time of an operation as well: it says
// what the operation costs where other programs share the machine, and counts all goroutines.
// Call what it returns after the last operation.
func ReportCPU(b *testing.B) func() {
	before := processorTime(b)
	return func() {
		b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
