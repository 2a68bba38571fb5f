//go:build !linux && !darwin && !freebsd

package natsdeploy

func freeBytes(string) (int64, bool) { return 0, false }
