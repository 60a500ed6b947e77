package model

import "os"

// SystemBudget measures what this process may take now; false where the system does not say.
func SystemBudget() (Budget, bool) {
	return linuxBudget(func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		return b
	})
}
