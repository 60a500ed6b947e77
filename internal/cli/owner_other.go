//go:build !linux

package cli

// ownServer reports whether what listens at a loopback address belongs to this user. There is no cheap way to ask here.
func ownServer(*remote) bool { return true }
