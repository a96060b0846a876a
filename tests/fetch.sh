#!/usr/bin/env bash
# Brings what the tests need from the package registries, each piece once, into a folder outside of the source tree:
#   fetch.sh features | python | javascript | java | go | reference
# Prints nothing when the piece is there already. Says what is missing when it cannot be had.
set -euo pipefail
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
fetched="${CARGO_TARGET_DIR:-$tests/../target}/fetched"
mkdir -p "$fetched"
fetched=$(cd "$fetched" && pwd)

# need COMMAND WHAT-IT-IS-FOR HOW-TO-GET-IT
need() {
  command -v "$1" >/dev/null 2>&1 && return
  echo "tests/fetch.sh: $1 is missing; $2 needs it. Install $3." >&2
  exit 3
}

# attempt MESSAGE COMMAND...: runs the command, shows its output only when it fails
attempt() {
  local message=$1
  shift
  if ! "$@" >"$fetched/last.log" 2>&1; then
    tail -n 30 "$fetched/last.log" >&2
    echo "tests/fetch.sh: $message" >&2
    exit 4
  fi
}

# The same version of a piece is not fetched twice: its stamp is a copy of the file that pins it.
is_fetched() { cmp -s "$1" "$fetched/$2.stamp"; }
stamp() { cp "$1" "$fetched/$2.stamp"; }

# libraries PIECE WHAT-IT-IS-FOR POM NAME: what a pom.xml names, with all that it needs
libraries() {
  need java "$2" "a JDK, 17 or newer (Debian: openjdk-17-jdk-headless)"
  need mvn "$2" "Maven 3 (Debian: maven)"
  is_fetched "$3" "$1" && return
  rm -rf "${fetched:?}/$1"
  attempt "Maven cannot get $4 from Maven Central; is there a network?" \
    mvn -q -B -f "$3" dependency:copy-dependencies -DoutputDirectory="$fetched/$1" -DincludeScope=runtime
  stamp "$3" "$1"
}

case "${1:-}" in
features)
  jar="$fetched/gremlin-test-3.8.1.jar"
  if [[ ! -s $jar ]]; then
    need mvn "the feature suite" "Maven 3 (Debian: maven)"
    attempt "cannot get org.apache.tinkerpop:gremlin-test:3.8.1 from Maven Central; is there a network?" \
      mvn -q -B dependency:copy -Dartifact=org.apache.tinkerpop:gremlin-test:3.8.1 -DoutputDirectory="$fetched"
  fi
  ;;
python)
  need python3 "the Python driver" "Python 3.9 or newer (Debian: python3 python3-venv)"
  pins="$tests/drivers/python/requirements.txt"
  if ! is_fetched "$pins" python; then
    rm -rf "$fetched/python"
    attempt "python3 cannot make a virtual environment; install venv (Debian: python3-venv)" python3 -m venv "$fetched/python"
    attempt "pip cannot install gremlinpython; is there a network?" \
      "$fetched/python/bin/pip" install --quiet --disable-pip-version-check -r "$pins"
    stamp "$pins" python
  fi
  ;;
javascript)
  need node "the JavaScript driver" "Node.js 18 or newer (Debian: nodejs)"
  need npm "the JavaScript driver" "npm (Debian: npm)"
  pins="$tests/drivers/javascript/package-lock.json"
  if ! is_fetched "$pins" javascript; then
    mkdir -p "$fetched/javascript"
    cp "$tests"/drivers/javascript/package*.json "$fetched/javascript/"
    attempt "npm cannot install the gremlin driver; is there a network?" \
      npm ci --silent --no-audit --no-fund --prefix "$fetched/javascript"
    stamp "$pins" javascript
  fi
  ;;
java)
  libraries java "the Java driver" "$tests/drivers/java/pom.xml" gremlin-driver
  ;;
reference)
  need python3 "the comparison with TinkerGraph" "Python 3.9 or newer (Debian: python3)"
  libraries reference "the comparison with TinkerGraph" "$tests/../bench/peers/tinkergraph-pom.xml" gremlin-server
  ;;
go)
  need go "the Go driver" "Go 1.25 or newer"
  pins="$tests/drivers/go/go.sum"
  if ! is_fetched "$pins" go || [[ "$tests/drivers/go/smoke.go" -nt "$fetched/go-smoke" ]]; then
    attempt "go cannot build the test of gremlin-go; is there a network?" \
      go -C "$tests/drivers/go" build -o "$fetched/go-smoke" .
    stamp "$pins" go
  fi
  ;;
*)
  echo "usage: tests/fetch.sh features|python|javascript|java|go|reference" >&2
  exit 2
  ;;
esac
