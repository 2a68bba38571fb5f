package service

import "time"

// OldKept replaces oldKept in tests, which can't wait minutes for a generation to be removed.
const OldKept = 300 * time.Millisecond

func init() { oldKept, oldRests = OldKept, 100*time.Millisecond }
