package bench

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine describes where a figure was measured.
type Machine struct {
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	Cores int    `json:"cores"`
	CPU   string `json:"cpu,omitempty"`
	Go    string `json:"go"`
	// Load is the load average of the minute before the measurement: how many processes wanted a
	// core. Nil if the system does not report it.
	Load *float64 `json:"load_average"`
}

// thisMachine describes the machine that runs this process.
func thisMachine() Machine {
	m := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
	m.CPU = procField("/proc/cpuinfo", "model name")
	if raw, err := os.ReadFile("/proc/loadavg"); err == nil {
		var load float64
		if _, err := fmt.Sscan(string(raw), &load); err == nil {
			m.Load = &load
		}
	}
	return m
}

// procField returns the value of the first line "name : value" of a file, "" if there is none.
func procField(path, field string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == field {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// memory returns a field of a process's status in MB, such as VmRSS for resident memory; nil if the
// system does not report it.
func memory(pid int, field string) *float64 {
	var kb float64
	if _, err := fmt.Sscan(procField(fmt.Sprintf("/proc/%d/status", pid), field), &kb); err != nil {
		return nil
	}
	return new(kb * 1024 / 1e6)
}

// processorTime returns the user and system time that a process has used; nil if the system does not
// report it.
func processorTime(pid int) *time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:])) // the field before may contain spaces
	const user, system, perSecond = 11, 12, 100
	if len(fields) <= system {
		return nil
	}
	var ticks time.Duration
	for _, field := range fields[user : system+1] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil
		}
		ticks += time.Duration(n)
	}
	return new(ticks * time.Second / perSecond)
}
