// Package bounded bounds maps that remember something of every conversation or project, so that a process that runs for
// months does not grow with them.
package bounded

// MakeRoom removes entries of a map, any of them, until it holds fewer than most. Those that are in use stay, even if
// they are more; inUse may be nil.
func MakeRoom[K comparable, V any](m map[K]V, most int, inUse func(V) bool) {
	for key, value := range m {
		if len(m) < most {
			return
		}
		if inUse == nil || !inUse(value) {
			delete(m, key)
		}
	}
}
