package memo_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"mneme.dev/mneme/internal/memo"
)

func TestResultsAreThoseOfTheFunctionHoweverManyKeysShareASlot(t *testing.T) {
	m := memo.New(2, strings.ToUpper)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1_000 {
				key := fmt.Sprint("key ", i%7)
				assert.Equal(t, strings.ToUpper(key), m.Of([]byte(key)))
			}
		})
	}
	wg.Wait()
}

func TestAResultIsRemembered(t *testing.T) {
	calls := 0
	m := memo.New(8, func(key string) int { calls++; return len(key) })
	for range 3 {
		assert.Equal(t, 4, m.Of([]byte("four")))
		assert.Equal(t, 0, m.Of(nil))
	}
	assert.LessOrEqual(t, calls, 6)
	assert.GreaterOrEqual(t, calls, 2)
	calls = 0
	assert.Equal(t, 0, m.Of(nil))
	assert.Equal(t, 0, calls)
}

func TestAKeyMayChangeAfterwards(t *testing.T) {
	m := memo.New(8, func(key string) string { return key })
	key := []byte("one")
	first := m.Of(key)
	copy(key, "two")
	assert.Equal(t, "one", first)
	assert.Equal(t, "one", m.Of([]byte("one")))
}
