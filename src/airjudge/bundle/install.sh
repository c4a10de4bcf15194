#!/bin/sh
# Install airjudge and its judges from this folder alone; needs Python and nothing else, and no network.
#   ./install.sh [TARGET]              TARGET is a new folder, or the one that an earlier bundle was installed into
#   PYTHON=/path/to/python3.11 ./install.sh        AIRJUDGE_CACHE=/path/with/space ./install.sh
#   NO_DEMO=1 ./install.sh             install, and do not score the demo samples
set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=${1:-$PWD/airjudge}
python=${PYTHON:-python3}

say() { printf 'airjudge: %s\n' "$*" >&2; }
fail() {
  say "$1"
  say "next: $2"
  exit 1
}

command -v "$python" >/dev/null || fail "there is no $python" 'name one: PYTHON=/path/to/python3 ./install.sh'

say 'checking every file against SHA256SUMS'
"$python" - "$here" <<'PYTHON' || fail 'this bundle is not what was packed' 'carry it in again; nothing was installed'
import hashlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
listed = dict(reversed(line.rstrip("\n").split("  ", 1)) for line in open(root / "SHA256SUMS", encoding="utf-8"))
found = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()} - {"SHA256SUMS"}
wrong = [f"{name} is missing" for name in sorted(listed.keys() - found)]
wrong += [f"{name} is not of this bundle" for name in sorted(found - listed.keys())]
for name in sorted(found & listed.keys()):
    digest = hashlib.sha256()
    with open(root / name, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    if digest.hexdigest() != listed[name]:
        wrong.append(f"{name} was changed")
print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
sys.exit(bool(wrong))
PYTHON

fact() { "$python" -c 'import json, sys; found = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."): found = found[key]
print(found if found is not None else "")' "$here/bundle.json" "$1"; }

if [ -d "$here/wheels" ]; then
  want="$(fact wanted.python) on $(fact wanted.machine)"
  have=$("$python" -c 'import platform, sys; print("%d.%d on %s" % (*sys.version_info[:2], platform.machine()))')
  [ "$want" = "$have" ] || fail "this bundle is for Python $want; $python is Python $have" \
    "PYTHON=/path/to/python$(fact wanted.python) ./install.sh, or make another: airjudge bundle --python"
  say "virtual environment in $target"
  "$python" -m venv --clear "$target" || fail 'Python could not make a virtual environment' \
    'install its venv module (Debian: python3-venv)'
  # Nothing of the machine's pip settings counts: no index, no other folder.
  unset PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_CONSTRAINT PIP_REQUIRE_VIRTUALENV
  export PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
  pip() { "$target/bin/python" -m pip install --quiet --no-input --no-deps --find-links "$here/wheels" "$@" ||
    fail 'a package could not be installed' 'look at the message above; the bundle may be for another machine'; }
  torch=$(fact torch)
  say 'packages (some minutes)'
  [ -z "$torch" ] || pip "$torch"
  pip --require-hashes --requirement "$here/packages.lock"
  pip "airjudge==$(fact airjudge)"
fi
[ -x "$target/bin/airjudge" ] || fail "airjudge is not installed in $target" \
  'name the folder that an earlier bundle was installed into: ./install.sh TARGET'

for judge in "$here"/judges/*/; do
  "$target/bin/airjudge" models pull "${judge}profile.toml" --from "$judge" ||
    fail "the judge in $judge could not be prepared" 'see the message above'
done
first=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["wanted"]["judges"][0])' "$here/bundle.json")
if [ -z "${NO_DEMO:-}" ]; then
  "$target/bin/airjudge" demo --judge "$first"
fi
say "installed: $target/bin/airjudge"
