package sdk

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a registry shows of a package is in the package's own folder: its README and its license.
func TestEachPackageHasAReadmeAndTheLicense(t *testing.T) {
	t.Parallel()
	license, err := os.ReadFile("../LICENSE")
	require.NoError(t, err)
	whole, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for folder, language := range map[string]string{"python": "python", "typescript": "js"} {
		own, err := os.ReadFile(folder + "/LICENSE")
		require.NoError(t, err)
		require.Equal(t, string(license), string(own))
		readme, err := os.ReadFile(folder + "/README.md")
		require.NoError(t, err)
		program := regexp.MustCompile("(?s)```" + language + "\n.*?```")
		require.Equal(t, string(program.Find(whole)), string(program.Find(readme)), "%s: the program that is run as a test", folder)
		require.NotContains(t, string(readme), "](../", "a registry shows no other file")
	}
}
