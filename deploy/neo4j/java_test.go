package neo4jdeploy

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJavaIsChosenForTheNeo4jVersion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		version   string
		installed []int
		want      int // 0: refused
	}{
		"5.26 takes 17":                      {"5.26.30", []int{17}, 17},
		"5.26 takes 21":                      {"5.26.1", []int{21}, 21},
		"the first that fits":                {"5.26.30", []int{25, 21, 17}, 21},
		"5.26 refuses 25":                    {"5.26.30", []int{25}, 0},
		"5.26 refuses 11":                    {"5.26.30", []int{11, 1}, 0},
		"early 2025 takes 21":                {"2025.07.1", []int{17, 25, 21}, 21},
		"early 2025 refuses 25":              {"2025.07.1", []int{25}, 0},
		"late 2025 takes 25":                 {"2025.11.2", []int{17, 25}, 25},
		"2026 takes 21":                      {"2026.09.0", []int{21}, 21},
		"2026 takes 25":                      {"2026.09.0", []int{17, 25}, 25},
		"2026 refuses 17":                    {"2026.09.0", []int{17}, 0},
		"nothing installed":                  {"2026.09.0", nil, 0},
		"a Java newer than all that we know": {"2026.09.0", []int{29}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var installed []java
			for _, major := range tc.installed {
				installed = append(installed, java{"/jvm/bin/java", major})
			}
			chosen, err := chooseJava(tc.version, slices.Values(installed))
			require.Equal(t, tc.want, chosen.major)
			if tc.want == 0 {
				require.ErrorIs(t, err, ErrNoJava)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestRefusedJavaIsExplained(t *testing.T) {
	t.Parallel()
	_, err := chooseJava("5.26.30", slices.Values([]java{{"/jvm/11/bin/java", 11}, {"/jvm/25/bin/java", 25}}))
	require.EqualError(t, err, "no suitable Java: Neo4j 5.26.30 needs Java 17 or 21; "+
		"found: Java 11 (/jvm/11/bin/java), Java 25 (/jvm/25/bin/java); "+
		"install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless), or set JAVA_HOME")
	_, err = chooseJava("5.26.30", slices.Values([]java(nil)))
	require.ErrorContains(t, err, "found: none at all;")
}

func TestJavaVersionIsParsed(t *testing.T) {
	t.Parallel()
	for printed, want := range map[string]int{
		"openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime Environment": 17,
		"openjdk version \"25\" 2025-09-16 LTS":                               25,
		"Picked up JAVA_TOOL_OPTIONS: -Xmx1g\njava version \"21.0.4\"":        21,
		"java version \"1.8.0_402\"":                                          1,
		"The operation couldn't be completed. Unable to locate a Java":        0,
	} {
		require.Equal(t, want, javaMajor(printed), printed)
	}
}
