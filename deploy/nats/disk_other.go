//go:build !linux && !darwin && !freebsd

package natsdeploy

// FreeBytes cannot be told here.
func FreeBytes(string) (int64, bool) { return 0, false }
