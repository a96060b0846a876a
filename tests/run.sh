#!/usr/bin/env bash
# Tests of a running server: TinkerPop's feature suite in both serializers, the four official drivers, and random traversals beside TinkerGraph.
#   run.sh [features|python|acid|javascript|java|go|reference|kill9 ROUNDS]...    (default: all but kill9)
# acid: the anomalies of the LDBC ACID tests, through the Python driver.
# The server is FICUS_BIN, or built here (FICUS_PROFILE, default test). What is missing is fetched; nothing is written into the
# source tree. The runner shares its build with `cargo test`. Ends with a line "N passed, N failed, N skipped" and with
# status 1 when something failed.
# The hostile clients and the short kill -9 loop are ordinary tests: cargo test -p ficus-conformance.
set -uo pipefail
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$tests")
target="${CARGO_TARGET_DIR:-$root/target}"
mkdir -p "$target" && target=$(cd "$target" && pwd) || exit 1
export CARGO_TARGET_DIR="$target"
fetched="$target/fetched"
profile="${FICUS_PROFILE:-test}"
folder=$([[ $profile == dev || $profile == test ]] && echo debug || echo "$profile")
# At least so many scenarios pass, with GraphBinary and with GraphSON 3.
expect_pass="${FICUS_EXPECT_PASS:-2042,2042}"

if ! command -v cargo >/dev/null 2>&1; then
  echo "tests/run.sh: cargo is missing; install Rust (the version in rust-toolchain.toml)" >&2
  exit 3
fi
cargo build --quiet --manifest-path "$root/Cargo.toml" --profile test -p ficus-conformance || exit 1
if [[ -z ${FICUS_BIN:-} ]]; then
  cargo build --quiet --manifest-path "$root/Cargo.toml" --profile "$profile" -p ficus-cli || exit 1
  export FICUS_BIN="$target/$folder/ficus"
fi

passed=0 failed=0 skipped=0
complain() { failed=$((failed + 1)); echo "not ok $*"; }

features() {
  "$tests/fetch.sh" features || { complain "features: not fetched"; return; }
  suite features-literal --format graphbinary,graphson3 --parameters literal
  suite features-binding --format graphbinary --parameters binding
}

# suite NAME FLAGS...: one start of the runner with a server of its own
suite() {
  local name=$1
  shift
  local log="$target/$name.log"
  "$target/debug/ficus-conformance" "$@" --features "$fetched/gremlin-test-3.8.1.jar" --expect-pass "$expect_pass" \
    --report "$target/$name.json" --io-files "$tests/fixtures/io" 2>&1 | tee "$log"
  local status=${PIPESTATUS[0]}
  local total='s/^.*: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) known failures, \([0-9]*\) skipped, \([0-9]*\) passes not expected$/\1 \2 \3 \4 \5/p'
  local p f k s u failed_before=$failed
  while read -r p f k s u; do
    passed=$((passed + p)) failed=$((failed + f + u)) skipped=$((skipped + k + s))
  done < <(sed -n "$total" "$log")
  [[ $status -eq 0 || $failed -gt $failed_before ]] || complain "$name: status $status"
}

# driver NAME COMMAND...: NAME begins with the driver's
driver() {
  local name=$1
  shift
  "$tests/fetch.sh" "${name%%-*}" || { complain "$name: not fetched"; return; }
  local log="$target/driver-$name.log"
  "$@" 2>&1 | sed -u "s/^\(ok\|not ok\|skip\) /\1 $name: /" | tee "$log"
  local status=${PIPESTATUS[0]}
  local oks nots
  oks=$(grep -c '^ok ' "$log") nots=$(grep -c '^not ok ' "$log")
  passed=$((passed + oks)) failed=$((failed + nots)) skipped=$((skipped + $(grep -c '^skip ' "$log")))
  [[ $status -eq 0 || $nots -gt 0 ]] || complain "$name: ended with status $status"
  [[ $((oks + nots)) -gt 0 || $status -ne 0 ]] || complain "$name: ran no case"
}

[[ $# -gt 0 ]] || set -- features python acid javascript java go reference
while [[ $# -gt 0 ]]; do
  case "$1" in
  features) features ;;
  python) driver python "$fetched/python/bin/python" "$tests/drivers/python/smoke.py" ;;
  acid) driver python-acid "$fetched/python/bin/python" "$tests/drivers/python/acid.py" ;;
  javascript) NODE_PATH="$fetched/javascript/node_modules" driver javascript node "$tests/drivers/javascript/smoke.cjs" ;;
  java) driver java java -cp "$fetched/java/*" "$tests/drivers/java/Smoke.java" ;;
  go) driver go "$fetched/go-smoke" ;;
  reference)
    driver reference python3 "$tests/reference/compare.py" --ficus "$FICUS_BIN" --programs "$fetched/reference"
    ;;
  kill9)
    shift
    if "$target/debug/ficus-kill9" --rounds "${1:-25}"; then passed=$((passed + 1)); else complain kill9; fi
    ;;
  *)
    echo "usage: tests/run.sh [features|python|acid|javascript|java|go|reference|kill9 ROUNDS]..." >&2
    exit 2
    ;;
  esac
  [[ $# -eq 0 ]] || shift
done

echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
