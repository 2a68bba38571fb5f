package settings

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSharesOfMemoryStayWithinTheTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Memory{Memory: rapid.IntRange(64, 1<<20).Draw(t, "MiB")}
		s := m.Shares()
		assert.Equal(t, int64(m.Memory)<<20, s.Total)
		assert.LessOrEqual(t, s.Heap+s.Caches, s.Total/8*7, "an eighth is left for the program")
		assert.Less(t, s.Indexes, s.Heap/2, "most of the heap is left for the rest")
		assert.Positive(t, s.Indexes)
	})
}

func TestIndexMemoryOverridesItsShare(t *testing.T) {
	assert.Equal(t, int64(7<<20), Memory{Memory: 100, IndexMemory: 7}.Shares().Indexes)
}

func TestMemoryFollowsTheLimitsOfTheProcess(t *testing.T) {
	none := func() (int64, bool) { return 0, false }
	of := func(limit int64) func() (int64, bool) { return func() (int64, bool) { return limit, true } }
	assert.Equal(t, int64(640<<20), availableMemory(math.MaxInt64, none))
	assert.Equal(t, int64(640<<20), availableMemory(math.MaxInt64, of(4<<30)))
	assert.Equal(t, int64(9000), availableMemory(math.MaxInt64, of(10_000)))
	assert.Equal(t, int64(8000), availableMemory(5000, none))
	assert.Equal(t, int64(8000), availableMemory(5000, of(10_000)))
	assert.LessOrEqual(t, availableMemory(400<<20, of(512<<20)), int64(461<<20), "the containers of docker-compose.yml")
}

func TestLimitsOfControlGroups(t *testing.T) {
	for text, want := range map[string]int64{"268435456\n": 256 << 20, "max\n": 0, "9223372036854771712\n": 0, "": 0, "-1": 0} {
		limit, ok := parseLimit(text)
		assert.Equal(t, want > 0, ok, text)
		if ok {
			assert.Equal(t, want, limit)
		}
	}
}

func TestMemoryFollowsTheLimitOfTheUnitOrTheContainer(t *testing.T) {
	const mib = 1 << 20
	v1 := "9:name=systemd:/user.slice\n4:cpu,memory:/docker/abc\n0::/\n"
	for name, c := range map[string]struct {
		files  map[string]string
		groups string
		want   int64
	}{
		"a container whose group is the root":  {map[string]string{"memory.max": "268435456\n"}, "0::/\n", 256 * mib},
		"MemoryMax of a unit":                  {map[string]string{"system.slice/mneme.service/memory.max": "268435456\n"}, "0::/system.slice/mneme.service\n", 256 * mib},
		"the limit of the slice around a unit": {map[string]string{"system.slice/memory.max": "1048576\n", "system.slice/mneme.service/memory.max": "max\n"}, "0::/system.slice/mneme.service\n", mib},
		"version 1":                            {map[string]string{"memory/docker/abc/memory.limit_in_bytes": "1048576\n", "memory/memory.limit_in_bytes": "9223372036854771712\n"}, v1, mib},
		"version 1, the host's path":           {map[string]string{"memory/memory.limit_in_bytes": "1048576\n"}, v1, mib},
		"a path outside of the container":      {map[string]string{"memory.max": "1048576\n"}, "0::/../../other\n", mib},
		"none":                                 {map[string]string{"memory.max": "max\n"}, "0::/\n", 0},
		"no control groups":                    {nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range c.files {
				require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o600))
			}
			limit, ok := groupLimit(root, c.groups)
			assert.Equal(t, c.want > 0, ok)
			if ok {
				assert.Equal(t, c.want, limit)
			}
		})
	}
}
