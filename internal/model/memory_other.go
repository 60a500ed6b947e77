//go:build !linux && !darwin && !windows

package model

// SystemBudget measures what this process may take now; false where the system does not say.
func SystemBudget() (Budget, bool) { return Budget{}, false }
