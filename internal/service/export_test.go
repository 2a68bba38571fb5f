package service

import "time"

// Tests don't wait for minutes until a generation goes.
func init() { oldKept, oldRests = 300*time.Millisecond, 100*time.Millisecond }
