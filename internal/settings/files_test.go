package settings

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// secretFile writes a file as Docker and Kubernetes mount secrets.
func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestASecretIsReadFromTheFileThatItsVariableNames(t *testing.T) {
	t.Setenv("MNEME_NEO4J_PASSWORD_FILE", secretFile(t, " hush hush\r\n"))
	t.Setenv("MNEME_NATS_URL_FILE", secretFile(t, "nats://me:hush@nats:4222\n"))
	t.Setenv("MNEME_LLM_KEY", "") // as compose sets what is not given
	t.Setenv("MNEME_LLM_KEY_FILE", secretFile(t, "key"))
	t.Setenv("MNEME_EMBEDDINGS_KEY_FILE", "")
	s := ForSummarizer()
	require.NoError(t, Read(s))
	require.Equal(t, " hush hush", s.Password)
	require.Equal(t, "nats://me:hush@nats:4222", s.NATSURL)
	require.Equal(t, "key", s.Key)
	require.Empty(t, s.EmbeddingsKey)

	shown := map[string]Setting{}
	for _, one := range Effective(ForSummarizer(), nil) {
		shown[one.Name] = one
		require.NotContains(t, one.Value, "hush")
	}
	require.Equal(t, FromFile, shown["MNEME_NEO4J_PASSWORD"].Source)
	require.Equal(t, masked, shown["MNEME_NEO4J_PASSWORD"].Value)
	require.Equal(t, "nats://me:xxxxx@nats:4222", shown["MNEME_NATS_URL"].Value)
	require.Equal(t, FromDefault, shown["MNEME_EMBEDDINGS_KEY"].Source)
	require.Empty(t, Environment(), "all these names are known")
}

func TestAFileOfASecretThatCannotBeUsedIsNamed(t *testing.T) {
	for says, set := range map[string][2]string{
		`MNEME_LLM_KEY_FILE="/no/such": can't be read: no such file or directory`: {"", "/no/such"},
		`MNEME_LLM_KEY_FILE="/": can't be read: is a directory`:                   {"", "/"},
		`MNEME_LLM_KEY_FILE="/dev/null": the file is empty`:                       {"", "/dev/null"},
		`MNEME_LLM_KEY_FILE="/x": MNEME_LLM_KEY is set too: give one of them`:     {"hush", "/x"},
	} {
		t.Run(says, func(t *testing.T) {
			t.Setenv("MNEME_LLM_KEY", set[0])
			t.Setenv("MNEME_LLM_KEY_FILE", set[1])
			require.EqualError(t, Read(ForSummarizer()), says)
			require.Equal(t, []Problem{{"MNEME_LLM_KEY_FILE", false, says}}, Environment())
		})
	}
}

func TestEverySecretCanBeReadFromAFile(t *testing.T) {
	for _, p := range Programs() {
		own := map[string]bool{}
		for _, f := range Fields(p.New()) {
			own[f.Variable] = true
		}
		for _, f := range Fields(p.New()) {
			if f.Secret {
				require.True(t, f.File != "" || own[f.Variable+fileSuffix], f.Variable)
			}
			if f.File != "" {
				require.False(t, own[f.File], "it is a setting of its own")
				require.Contains(t, f.Desc, f.File)
			}
		}
	}
}
