package insight

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTokensOfEveryDialectAreEachCountedOnce(t *testing.T) {
	t.Parallel()
	for dialect, c := range map[string]struct {
		usage string
		want  Tokens
	}{
		"Anthropic, cached tokens beside the input": {`{"input_tokens":3,"output_tokens":9,"cache_read_input_tokens":16606,"cache_creation_input_tokens":26144}`, Tokens{3, 16606, 26144, 9}},
		"Anthropic without a cache":                 {`{"input_tokens":3,"output_tokens":9}`, Tokens{3, 0, 0, 9}},
		"OpenAI chat, cached tokens in the input":   {`{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107,"prompt_tokens_details":{"cached_tokens":60}}`, Tokens{40, 60, 0, 7}},
		"OpenAI responses":                          {`{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":5}}`, Tokens{40, 60, 0, 7}},
		"Codex":                                     {`{"input_tokens":100,"cached_input_tokens":60,"output_tokens":7}`, Tokens{40, 60, 0, 7}},
		"OpenAI chat, written into the cache":       {`{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}`, Tokens{10, 60, 30, 7}},
		"OpenAI responses, written into the cache":  {`{"input_tokens":18014,"input_tokens_details":{"cache_write_tokens":18011,"cached_tokens":0},"output_tokens":7}`, Tokens{3, 0, 18011, 7}},
		"Codex, written into the cache":             {`{"input_tokens":100,"cached_input_tokens":60,"cache_write_input_tokens":30,"output_tokens":7}`, Tokens{10, 60, 30, 7}},
		"more written than read":                    {`{"prompt_tokens":10,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":6,"cache_write_tokens":30}}`, Tokens{0, 6, 4, 7}},
		"Gemini, thoughts beside the candidates":    {`{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":7,"thoughtsTokenCount":5,"totalTokenCount":112}`, Tokens{40, 60, 0, 12}},
		"Vercel":                                    {`{"inputTokens":100,"cachedInputTokens":60,"outputTokens":7}`, Tokens{40, 60, 0, 7}},
		"Vercel, with details":                      {`{"inputTokens":1070,"inputTokenDetails":{"noCacheTokens":120,"cacheReadTokens":900,"cacheWriteTokens":50},"outputTokens":7,"cachedInputTokens":900}`, Tokens{120, 900, 50, 7}},
		"Vercel, with details alone":                {`{"inputTokens":1070,"inputTokenDetails":{"noCacheTokens":120,"cacheReadTokens":900,"cacheWriteTokens":50},"outputTokens":7}`, Tokens{120, 900, 50, 7}},
		"Bedrock":                                   {`{"inputTokens":40,"cacheReadInputTokens":60,"cacheWriteInputTokens":5,"outputTokens":7}`, Tokens{40, 60, 5, 7}},
		"Pi":                                        {`{"input":40,"output":7,"cacheRead":60,"cacheWrite":5}`, Tokens{40, 60, 5, 7}},
		"opencode":                                  {`{"input":40,"output":7,"reasoning":2,"cache":{"read":60,"write":5}}`, Tokens{40, 60, 5, 9}},
		"Gemini CLI":                                {`{"input":100,"output":7,"cached":60,"thoughts":5,"tool":3,"total":115}`, Tokens{43, 60, 0, 12}},
		"more cached than read":                     {`{"prompt_tokens":10,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60}}`, Tokens{0, 10, 0, 7}},
	} {
		got, ok := TokensOf([]byte(c.usage))
		require.True(t, ok, dialect)
		require.Equal(t, c.want, got, dialect)
	}
}

func TestUsageThatNobodyCanReadIsUnknownAndNotZero(t *testing.T) {
	t.Parallel()
	for _, usage := range []string{``, `null`, `[]`, `"12"`, `{}`, `{"tokens":5}`, `{"input_tokens":-1}`, `{"input_tokens":"many"}`, `{"input_tokens":1e300}`, `{"prompt_tokens":null}`} {
		_, ok := TokensOf([]byte(usage))
		require.False(t, ok, usage)
	}
}

func TestErrorsThatDifferInPathsNumbersAndIdsAreOne(t *testing.T) {
	t.Parallel()
	for want, list := range map[string][]string{
		"open <path>: no such file or directory":      {"open /a/b.go: no such file or directory", "open ./c/d_test.go:  no such file or directory"},
		"File does not exist.":                        {"<tool_use_error>File does not exist.</tool_use_error>", "File does not exist."},
		"exit status <n>":                             {"exit status 1", "exit status 127"},
		"commit <id> is gone":                         {"commit 98af791c is gone", "commit 0xdeadbeef is gone", "commit 0a93878f-dc30-4a5d-882f-3cd81cd3d499 is gone", "commit toolu_01C9k3aXDvfa2Q8pkHaDrkH8 is gone"},
		"the defaced effaced facade was not found":    {"the defaced effaced facade was not found"},
		"<path>:<n>: undefined: x":                    {"/w/x.go:10:3: undefined: x", "pkg/y.go:7:12: undefined: x"},
		"<n> bytes are more than <n>":                 {"12345678 bytes are more than 1000000", "999 bytes are more than 256"},
		"push to git@host:<path> failed":              {"push to git@host:org/repo.git failed"},
		"no <path>":                                   {`no C:\a\b.go`, "no c:/a/b.go"},
		"File has not been read yet. Read it first":   {"File has not been read yet.\nRead it first"},
		"took <n>s, more than <n>":                    {"took 1.5s, more than 1,000", "took 2s, more than 3"},
		"cannot use x (variable of type int) as text": {"cannot use x (variable of type int) as text"},
	} {
		for _, text := range list {
			require.Equal(t, want, Normalise(text), text)
		}
	}
}

func TestALawOfHistogramsAQuantileIsWrongByAThirtySecondAtMost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		list := rapid.SliceOfN(rapid.Int64Range(0, maxMS), 1, 200).Draw(r, "values")
		share := rapid.Float64Range(0, 1).Draw(r, "share")
		var one, left, right Histogram
		for i, v := range list {
			one.Add(v)
			if i%2 == 0 {
				left.Add(v)
			} else {
				right.Add(v)
			}
		}
		left.Merge(right)
		if !slices.Equal(one, left) {
			r.Fatalf("%v in parts is %v", one, left)
		}
		slices.Sort(list)
		want, got := list[int(share*float64(len(list)-1))], one.Quantile(share)
		if math.Abs(float64(got-want)) > float64(want)/32 {
			r.Fatalf("quantile %v of %v is %d, not %d", share, list, got, want)
		}
	})
}

func TestAHistogramOfNothingAndOfTheLargestValueHasQuantiles(t *testing.T) {
	t.Parallel()
	var h Histogram
	require.Zero(t, h.Quantile(0.5))
	h.Add(-5)
	require.Zero(t, h.Quantile(1))
	h.Add(math.MaxInt64)
	require.InEpsilon(t, math.MaxInt64, h.Quantile(1), 1.0/32)
}

func TestAReadRepeatsOneOfTheSamePartOrOfAllOfTheFile(t *testing.T) {
	t.Parallel()
	var s seen
	require.False(t, s.read("a", "1-10"))
	require.True(t, s.read("a", "1-10"))
	require.False(t, s.read("a", "11-20"))
	require.False(t, s.read("a", ""), "more than was read before")
	require.True(t, s.read("a", "21-30"))
	require.False(t, s.read("b", ""))
	s.written("a")
	require.False(t, s.read("a", "1-10"))
	require.True(t, s.read("b", ""))
	for n := range 10 * maxSeen {
		require.False(t, s.read(fmt.Sprint(n), ""))
	}
	require.Len(t, s, maxSeen*seenSize)
	require.False(t, s.read("b", ""), "forgotten")
}
