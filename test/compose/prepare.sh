#!/usr/bin/env bash
# Puts into .cache/compose what is missing to run docker-compose.yml in the test:
#
#   docker-compose   Compose, built from its Go module
#   engine/          Debian's docker.io, unpacked but not installed, if no engine answers
#   context/         the build context of stand-ins, for images that no variable names
#
# It needs no image registry. If no Docker engine answers, it needs Debian, its package
# registry and root.
set -euo pipefail
cd "$(dirname "$0")/../.."
cache="$PWD/.cache/compose"
compose=v2.40.3
mkdir -p "$cache"

die() { echo "docker-compose.yml can't be run: $*" >&2; exit 1; }

# once FILE WHAT MAKE…: unless FILE exists, runs MAKE with a temporary name and moves the result to FILE.
once() {
  local file="$1" what="$2"; shift 2
  [[ ! -e "$file" ]] || return 0
  echo "making $what"
  rm -rf "$file.new"
  "$@" "$file.new" >"$cache/log" 2>&1 || die "no $what: $(tail -n 3 "$cache/log" | tr '\n' ' ')($cache/log)"
  mv "$file.new" "$file"
}

build_compose() { # its go.mod excludes versions, so that it can't be installed by name
  local module="$cache/module"
  rm -rf "$module"; mkdir "$module"
  (cd "$module" && go mod init compose && go get "github.com/docker/compose/v2/cmd@$compose" &&
    go build -trimpath -ldflags='-s -w' -o "$1" github.com/docker/compose/v2/cmd)
  rm -rf "$module"
}

# debian PACKAGE… unpacks the missing ones of the packages and their dependencies.
debian() {
  local into="$1" debs="$1.debs"; shift
  rm -rf "$debs"; mkdir -p "$debs/partial" "$into"
  local get=(apt-get -y --no-install-recommends --download-only -o "Dir::Cache::archives=$debs" -o APT::Sandbox::User=root install "$@")
  "${get[@]}" || { apt-get update && "${get[@]}"; }
  for deb in "$debs"/*.deb; do dpkg -x "$deb" "$into"; done
  rm -rf "$debs"
}
unpack_engine() {
  debian "$1" docker.io iptables
  # What Debian would choose among when it installs.
  for name in iptables ip6tables; do
    [[ ! -e "$1/usr/sbin/xtables-nft-multi" ]] || ln -s xtables-nft-multi "$1/usr/sbin/$name"
  done
}

pack_debian() {
  local dir="$cache/debian" tools="$cache/tools"
  rm -rf "$dir" "$tools"
  debian "$tools" debootstrap
  DEBOOTSTRAP_DIR="$tools/usr/share/debootstrap" sh "$tools/usr/sbin/debootstrap" --variant=minbase \
    --include=ca-certificates,git,busybox-static,default-jre-headless "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$dir"
  tar -C "$dir" --exclude=./var/cache/apt --exclude=./var/lib/apt/lists --exclude=./usr/share/doc --exclude=./usr/share/locale \
    --exclude=./usr/share/man -cf "$1" .
  rm -rf "$dir" "$tools"
}
pack_go() { tar -C "$(go env GOROOT)/.." --transform='s,^[^/]*,go,' --exclude="$(basename "$(go env GOROOT)")/test" -cf "$1" "$(basename "$(go env GOROOT)")"; }

once "$cache/docker-compose-$compose" "docker compose $compose" build_compose
ln -sfn "docker-compose-$compose" "$cache/docker-compose"

if ! docker version >/dev/null 2>&1; then
  [[ "$(id -u)" = 0 ]] || die "no docker engine answers, and only root can start one"
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || die "no docker engine answers, and one can be had by apt-get only"
  once "$cache/engine" "a docker engine" unpack_engine
fi

[[ -z "${NATS_IMAGE:-}" || -z "${NEO4J_IMAGE:-}" || -z "${BUILD_IMAGE:-}" ]] || exit 0
[[ "$(id -u)" = 0 ]] && command -v apt-get >/dev/null || die "images are made from Debian's packages, by root; or name them: NATS_IMAGE, NEO4J_IMAGE and BUILD_IMAGE"
context="$cache/context"
mkdir -p "$context"
once "$context/debian.tar" "an image of Debian with git and Java" pack_debian
go_version="$(go env GOVERSION)"
once "$context/$go_version.tar" "an image of Go" pack_go
ln -fn "$context/$go_version.tar" "$context/go.tar"
CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$context/nats-server" github.com/nats-io/nats-server/v2
jars="$(go run ./deploy/neo4j/fetch lts)"
rm -rf "$context/neo4j-lib"
cp -al "$jars" "$context/neo4j-lib"
cp test/compose/standin/Dockerfile test/compose/standin/neo4j-entrypoint /etc/ssl/certs/ca-certificates.crt "$context"
