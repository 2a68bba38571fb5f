package service

import "time"

// OldKept is oldKept in tests, which don't wait for minutes until a generation goes.
const OldKept = 300 * time.Millisecond

func init() { oldKept, oldRests = OldKept, 100*time.Millisecond }
