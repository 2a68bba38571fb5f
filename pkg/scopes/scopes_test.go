package scopes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/pkg/scopes"
)

// outline lists the scopes of a file, one a line; a block has no name.
func outline(t *testing.T, name, text string) string {
	t.Helper()
	f, reason := scopes.Cut(name, []byte(text))
	require.Empty(t, reason)
	var out []string
	for _, s := range f.Scopes {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d-%d %s %s", s.Start, s.End, s.Kind, s.Name)))
	}
	return strings.Join(out, "\n")
}

// A megabyte that some rule has to look at again and again is cut in about a second. It took minutes when a rule looked
// back to the beginning of its line, or on to its end.
func TestNoFileTakesLong(t *testing.T) {
	t.Parallel()
	short := strings.Repeat("\n", 3_600) // or the file would count as minified
	for name, text := range map[string]string{
		"divisions.js": strings.Repeat("a/ ", 300_000) + short,
		"patterns.js":  strings.Repeat("=/[ ", 220_000) + short,
		"signs.c":      strings.Repeat("a#", 450_000) + short,
		"values.js":    strings.Repeat(strings.Repeat("{}=", 33)+"\n", 10_000),
		"values.rs":    strings.Repeat("x(a){}=\n", 120_000),
	} {
		began := time.Now()
		_, reason := scopes.Cut(name, []byte(text))
		require.Empty(t, reason)
		require.Less(t, time.Since(began), 15*time.Second, name)
	}
}

func TestFilesAreCutAtTheirDeclarations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"store.go": {"package a\n\nimport \"fmt\"\n\n// Store keeps.\ntype Store struct {\n\ta int\n}\n\nconst (\n\tA = 1\n\tB = 2\n)\n\n// Close ends.\nfunc (s *Store[T]) Close() error {\n\treturn fmt.Errorf(\"}\")\n}\n\ntype (\n\tX int\n\tY string\n)\n\nfunc init() {}\n",
			"5-8 type Store\n10-13 value A\n15-18 function Store.Close\n21-21 type X\n22-22 type Y\n25-25 function init"},
		"broken.go": {"package a\n\nfunc good(a int) {\n\tif a > 1 {\n\t}\n}\n\nfunc (s *Store) Bad( {\n}\n\ntype T struct {\n\ta int\n}\n",
			"3-6 function good\n8-13 block"},
		"a.py": {"import os\n\nLIMIT = 3\nNAMES = [\n    'a',\n]\n\n@cached\ndef first(\n    a,\n    b,\n):\n    \"\"\"Says:\ndef inner(): no\n    \"\"\"\n    return a\n\nclass Store(Base):\n    # the name\n    async def close(self):\n        pass\n\n    @property\n    def name(self): return 1\n\nx = 1\n",
			"1-6 block\n8-16 function first\n18-24 type Store\n19-21 function Store.close\n23-24 function Store.name"},
		"a.rb":  {"class Store\n  # Closes.\n  def close(now)\n    @io.close\n  rescue IOError => e\n    log e\n  end\n\n  def self.open = new\nend\n", "1-10 type Store\n2-7 function Store.close\n9-9 function Store.open"},
		"a.lua": {"-- adds\nlocal function add(a, b)\n  return a + b\nend\nfunction M.sub(a)\n  return -a\nend\n", "1-4 function add\n5-7 function M.sub"},
		"a.ex":  {"defmodule A.B do\n  @doc \"\"\"\n  def no\n  \"\"\"\n  def run(x) do\n    x\n  end\nend\n", "1-8 type A.B\n5-7 function A.B.run"},
		"a.ts": {"import { a } from 'b'\n\n/** Says\n * it. */\nexport async function say<T>(text: T): Promise<{ a: string }> {\n  return { a: `${text} }` }\n}\n\nexport default class Store extends Base<{ x: 1 }> implements I {\n  private readonly a = { b: 1 }\n  constructor(private a: string) { super() }\n  get size(): number { return 1 }\n  async *[Symbol.iterator]() { }\n  @Input() close(now = '}') {\n    if (now) { return }\n  }\n}\n\nexport const add = async (a: number, b: number): Promise<number> => {\n  return a + b\n}\n\nexport interface Point {\n  x: number // {\n}\n\ntype Names = 'a' | 'b';\n\nexport type Options = {\n  a: string\n}\n",
			"3-7 function say\n9-17 type Store\n11-11 function Store.constructor\n12-12 function Store.size\n14-16 function Store.close\n19-21 function add\n23-25 type Point\n27-27 type Names\n29-31 type Options"},
		"a.js": {"const x = require('x')\nconst { a, b } = x\n\nfunction* one() { yield /[/']{/ }\n\nmodule.exports = {\n  one,\n  two() { return 1 },\n}\n\ndescribe('one', () => {\n  it('works', () => {\n    one()\n  })\n})\n", "1-2 block\n4-4 function one\n6-15 block"},
		"A.java": {"package a;\n\nimport java.util.*;\n\n/**\n * Keeps.\n */\n@Service(name = \"a\")\npublic final class Store<T extends A> implements B {\n  private static final Map<String, X> M = new HashMap<>() {{ put(\"a\", 1); }};\n  private int[] a = {1, 2};\n\n  @Override\n  public Map<String, List<T>> close(@Nullable String a) throws IOException {\n    while (true) { break; }\n  }\n\n  Store(int a) { this.a = a; }\n\n  enum Color { RED, GREEN }\n\n  record Point(int x, int y) { }\n}\n",
			"5-23 type Store\n13-16 function Store.close\n18-18 function Store.Store\n20-20 type Store.Color\n22-22 type Store.Point"},
		"a.kt":    {"package a\n\ndata class P(val x: Int) {\n  fun <T> add(o: T): P {\n    return this\n  }\n  companion object {\n    fun of() { }\n  }\n}\n\nsuspend fun main() {\n}\n", "3-10 type P\n4-6 function P.add\n7-9 type P\n8-8 function P.of\n12-13 function main"},
		"a.swift": {"@objc public class A: B {\n  init(a: Int) { }\n  private func go(_ a: Int) -> Int { 1 }\n}\nextension A {\n  func two() {}\n}\n", "1-4 type A\n2-2 function A.init\n3-3 function A.go\n5-7 type A\n6-6 function A.two"},
		"a.cs":    {"using System;\n\nnamespace A.B\n{\n    [Obsolete]\n    public sealed class Store : IStore\n    {\n        public string Name { get; set; }\n\n        public async Task<int> Close(int a)\n        {\n            if (a > 0) { }\n            return 1;\n        }\n    }\n}\n", "5-15 type Store\n10-14 function Store.Close"},
		"a.c": {"#include <a.h>\n#define X(a) do { \\\n  b(a); \\\n} while (0)\n\nstruct point {\n  int x;\n};\n\nstatic const char *names[] = {\"a\", \"{\"};\n\n/* Adds. */\nstatic int\nadd(int a, char b)\n{\n  if (a == '{') { return 1; }\n  return a + b;\n}\n\nstruct point *make(int x) {\n  return 0;\n}\n\nint add(int a, char b);\n",
			"1-4 block\n6-8 type point\n12-18 function add\n20-22 function make"},
		"a.cpp":     {"namespace a {\n\ntemplate <typename T>\nclass EXPORT_API Store : public Base<T> {\n public:\n  explicit Store(int a) : a_{a}, b_(1) { go(); }\n  ~Store() override = default;\n  bool operator==(const Store& o) const { return true; }\n  void close() noexcept {\n  }\n private:\n  int a_;\n};\n\nvoid Store::open(std::vector<int> a) {\n}\n\n}  // namespace a\n\nTEST(Store, Closes) {\n  EXPECT_TRUE(1'000);\n}\n", "3-13 type Store\n6-6 function Store.Store\n8-8 function Store.operator==\n9-10 function Store.close\n15-16 function Store.open\n20-22 function TEST"},
		"a.rs":      {"use std::io;\n\n#[derive(Debug)]\npub struct Store<'a> {\n    name: &'a str,\n}\n\npub struct Unit(u8);\n\nimpl<'a, T> fmt::Display for Store<'a> {\n    /// Says {\n    pub(crate) async fn close(&self, c: char) -> Result<(), E> where T: A {\n        let a = '{';\n        let b = r#\"}\"#;\n    }\n}\n\nmod tests {\n    #[test]\n    fn works() {}\n}\n", "3-6 type Store\n8-8 type Unit\n11-15 function Store.close\n19-20 function tests.works"},
		"a.php":     {"<?php\nnamespace A;\n\nabstract class Store extends Base\n{\n    # note {\n    public static function open(string $a): self\n    {\n        return new self(\"}\");\n    }\n}\n", "4-11 type Store\n6-10 function Store.open"},
		"a.sh":      {"#!/bin/sh\nset -eu\nx=${1:-a}\n\nbuild() {\n  echo ${#x} '}'\n}\n\nfunction clean {\n  rm -f a\n}\n", "1-3 block\n5-7 function build\n9-11 function clean"},
		"a.proto":   {"syntax = \"proto3\";\npackage a;\n\nmessage Point {\n  message Inner { int32 x = 1; }\n}\n\nservice S {\n  rpc Get(A) returns (B) {}\n}\n", "4-6 type Point\n5-5 type Point.Inner\n8-10 type S"},
		"README.md": {"intro\n\n# Title #\n\ntext\n\n```sh\n# no heading\n```\n\n## Part\n\n#tag\n\nOld\n===\n\nmore\n\n- - -\n", "1-1 section\n3-9 section Title\n11-13 section Part\n15-20 section Old"},
		"a.yaml":    {"a: 1\nb: 2\n\n\nc:\n  d: 3\n", "1-6 block"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, outline(t, "dir/"+name, c.text))
		})
	}
}

func TestATextEndsBeforeWhatIsInside(t *testing.T) {
	t.Parallel()
	f, _ := scopes.Cut("a.py", []byte("class A:\n    x = 1\n\n    def f(self):\n        return 1\n"))
	require.Equal(t, "class A:\n    x = 1", f.Scopes[0].Text)
	require.Equal(t, "    def f(self):\n        return 1", f.Scopes[1].Text)
}

func TestFilesThatNobodyReadsAreSkipped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want scopes.Reason
	}{
		"a.png":     {"x", scopes.Unknown},
		"LICENSE":   {"x", scopes.Unknown},
		".go":       {"package a", scopes.Unknown},
		"a.go":      {"package a\x00", scopes.Binary},
		"latin.c":   {strings.Repeat("\xff\xfe", 20), scopes.Binary},
		"a.min.js":  {strings.Repeat("function a(){return 1};", 400), scopes.Minified},
		"bundle.js": {strings.Repeat("function a(){return 1};", 1<<20/10), scopes.TooLarge},
		"empty.py":  {" \n\n", scopes.Empty},
	} {
		f, reason := scopes.Cut(name, []byte(c.text))
		require.Equal(t, c.want, reason, name)
		require.Empty(t, f.Scopes)
	}
	f, reason := scopes.Cut("latin.c", []byte("/* caf\xe9 */\r\nint caf(int a) {\r\n  return a;\r\n}\r\n"))
	require.Empty(t, reason)
	require.Equal(t, "/* caf\uFFFD */\nint caf(int a) {\n  return a;\n}", f.Scopes[0].Text)
}

func TestLimitsAreSaid(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("package a\n")
	for i := range scopes.MaxScopes + 7 {
		fmt.Fprintf(&b, "func f%d() {}\n", i)
	}
	f, _ := scopes.Cut("a.go", []byte(b.String()))
	require.Len(t, f.Scopes, scopes.MaxScopes)
	require.Equal(t, 7, f.Left)
	f, _ = scopes.Cut("a.go", []byte("package a\n\nfunc long() {\n"+strings.Repeat("\tcall()\n", 2_000)+"}\n"))
	require.Len(t, f.Scopes, 1)
	require.LessOrEqual(t, len(f.Scopes[0].Text), scopes.MaxTextBytes)
	require.True(t, strings.HasSuffix(f.Scopes[0].Text, "\tcall()"), "whole lines")
	require.Equal(t, 2_003, f.Scopes[0].End-1)
}

var names = []string{"a.go", "a.py", "a.rb", "a.lua", "a.ex", "a.ts", "a.js", "a.java", "a.kt", "a.scala", "a.swift", "a.cs", "a.c", "a.cpp", "a.rs", "a.php", "a.dart", "a.sh", "a.md", "a.yaml", "a.css", "a.proto"}

// laws hold for every file.
func laws(t interface {
	require.TestingT
	Helper()
}, name string, content []byte) {
	t.Helper()
	f, reason := scopes.Cut(name, content)
	if reason != "" {
		require.Empty(t, f.Scopes)
		return
	}
	require.LessOrEqual(t, len(f.Scopes), scopes.MaxScopes)
	lines := strings.Split(strings.ToValidUTF8(strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(string(content), "\ufeff"), "\r\n", "\n"), "\r", "\n"), "\uFFFD"), "\n")
	for i, s := range f.Scopes {
		require.LessOrEqual(t, 1, s.Start)
		require.LessOrEqual(t, s.Start, s.End)
		require.LessOrEqual(t, s.End, f.Lines)
		require.LessOrEqual(t, len(s.Text), scopes.MaxTextBytes)
		require.LessOrEqual(t, len(s.Name), scopes.MaxNameBytes)
		require.NotContains(t, s.Name, "\n")
		if i > 0 {
			require.LessOrEqual(t, f.Scopes[i-1].Start, s.Start)
		}
		require.True(t, strings.HasPrefix(strings.Join(lines[s.Start-1:s.End], "\n"), s.Text), "the text is what the file says: %q", s.Text)
	}
	again, _ := scopes.Cut(name, content)
	require.Equal(t, f, again)
}

func TestWhateverAFileHoldsItsScopesAreItsLines(t *testing.T) {
	t.Parallel()
	parts := []string{"{", "}", "(", ")", ";", "\n", "\n\n", "  ", "\t", "\"", "'", "`", "//", "/*", "*/", "#", "class A", "def f(x):", "func g()", "fn h<T>()", "struct S", "impl<T> A for B", "=>", "=", "const x", "end", "return", "\\", "::", "<", ">", "[", "]", "@a", "type", "é", "\r\n", "\r", "```", "===", ",", "template", "operator", "extern"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 80).Draw(t, "parts"), rapid.SampledFrom([]string{"", " "}).Draw(t, "between"))
		laws(t, rapid.SampledFrom(names).Draw(t, "name"), []byte(text))
	})
}

func FuzzCut(f *testing.F) {
	f.Add(0, []byte("package a\n\nfunc f() {}\n"))
	f.Add(5, []byte("export const a = () => {\n}\n"))
	f.Add(14, []byte("impl A for B { fn c() { r#\"}\"# } }"))
	f.Fuzz(func(t *testing.T, n int, content []byte) {
		laws(t, names[uint(n)%uint(len(names))], content)
	})
}
