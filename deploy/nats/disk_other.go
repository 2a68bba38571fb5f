//go:build !linux && !darwin && !freebsd

package natsdeploy

// FreeBytes returns false: free space is not known on this system.
func FreeBytes(string) (int64, bool) { return 0, false }
