package jwt

import "time"

const MaxWaiting = maxWaiting

// SetPatience sets how long checks wait for a key and how long a fetch may take.
func (v *Verifier) SetPatience(wait, fetch time.Duration) {
	v.keys.waitWithin, v.keys.fetchWithin = wait, fetch
}

// Waiting returns how many checks wait for a key.
func (v *Verifier) Waiting() int { return int(v.keys.waiting.Load()) }
