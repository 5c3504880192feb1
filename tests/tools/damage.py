"""damage.py DELTAFS DIR COPY KEY...: damage a directory in many places, one at a time, and ask about it.

Whatever is damaged: `verify` finds it, names the file and an offset in it; `scan` and `get` print only lines that they
print of the sound directory, and all of them unless they end with 3 and a message that names the file.
"""

import os
import re
import shutil
import subprocess
import sys

FLIPS = int(os.environ.get("DAMAGE_FLIPS", "64"))  # about that many in each file
PRINTED = 12  # complaints


class Ask:
    def __init__(self, deltafs, container):
        self.deltafs = deltafs
        self.container = container

    def __call__(self, *words):
        p = subprocess.run(
            [self.deltafs, words[0], self.container, *words[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=60,
        )
        return p.returncode, p.stdout.decode("latin-1").splitlines(), p.stderr.decode("latin-1")


def files_of(container):
    found = []
    for folder, _, names in os.walk(container):
        found.extend(os.path.join(folder, name) for name in names)
    return sorted(found)


class Check:
    def __init__(self, ask, keys):
        self.ask = ask
        self.keys = keys
        self.sound = {words: ask(*words) for words in self.questions()}
        self.complaints = []
        self.count = 0
        for words, (code, lines, _) in self.sound.items():
            if code != 0 or len(lines) < 2:
                sys.exit("damage.py: %s of the sound directory: exit code %d" % (words, code))

    def questions(self):
        return [("scan", "--format=csv"), ("get", *self.keys, "--format=csv")]

    def complain(self, what, text):
        self.complaints.append("%s: %s" % (what, text))

    def names_place(self, what, path, size, err):
        """Whether a message names the file and an offset that is in it or at its end."""
        offsets = [int(o) for o in re.findall(re.escape(path) + r":.* offset (\d+)", err)]
        if not offsets or min(offsets) > size:
            self.complain(what, "no message with the file and an offset: %r" % err)

    def check(self, what, path, is_seen_by_verify, size):
        self.count += 1
        code, _, err = self.ask("verify")
        if code != (3 if is_seen_by_verify else 0):
            self.complain(what, "verify ends with %d: %r" % (code, err))
        elif is_seen_by_verify:
            self.names_place(what, path, size, err)
        for words in self.questions():
            code, lines, err = self.ask(*words)
            sound = self.sound[words][1]
            if code == 0:
                if lines != sound:
                    self.complain(what, "%s prints something else, and ends with 0" % words[0])
            elif code != 3:
                self.complain(what, "%s ends with %d: %r" % (words[0], code, err))
            else:
                self.names_place(what + ", " + words[0], path, size, err)
                if not set(lines) <= set(sound):
                    self.complain(what, "%s prints what is not there: %r" % (words[0], sorted(set(lines) - set(sound))))


def damage_file(check, path, name):
    with open(path, "rb") as f:
        data = f.read()

    def put(content):
        with open(path, "wb") as f:
            f.write(content)

    step = max(1, len(data) // FLIPS)
    is_manifest = name == "MANIFEST"
    for at in range(0, len(data), step):
        put(data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :])
        # A first line that is no manifest's is another matter: a folder that is no directory.
        if is_manifest and at < 8:
            code, _, err = check.ask("verify")
            if code != 3 or "not the manifest" not in err or path not in err:
                check.complain("%s: bit at %d" % (name, at), "verify: %d, %r" % (code, err))
            continue
        check.check("%s: bit at %d" % (name, at), path, True, len(data))
    # The copy of the manifest may have fewer lines, or be missing; without its first lines the manifest is none.
    if name != "MANIFEST.copy":
        for length in range(200 if is_manifest else 0, len(data), max(1, step * 4)):
            put(data[:length])
            check.check("%s: cut to %d" % (name, length), path, True, len(data))
    if not is_manifest and name != "MANIFEST.copy":
        os.unlink(path)
        for words in [("verify",)] + check.questions():
            code, lines, err = check.ask(*words)
            if code != 3 or path not in err:
                check.complain("%s: removed" % name, "%s ends with %d: %r" % (words[0], code, err))
    put(data)


def main():
    deltafs, container, copy = sys.argv[1:4]
    # Started hundreds of times: without libtool's script around it.
    built = os.path.join(os.path.dirname(deltafs), ".libs")
    if os.path.exists(os.path.join(built, "deltafs")):
        os.environ["LD_LIBRARY_PATH"] = built + ":" + os.environ.get("LD_LIBRARY_PATH", "")
        deltafs = os.path.join(built, "deltafs")
    shutil.copytree(container, copy)
    check = Check(Ask(deltafs, copy), sys.argv[4:])
    for path in files_of(copy):
        damage_file(check, path, os.path.relpath(path, copy))
    for text in check.complaints[:PRINTED]:
        print("damage.py: " + text)
    print("%d damages, %d complaints" % (check.count, len(check.complaints)))
    sys.exit(bool(check.complaints))


if __name__ == "__main__":
    main()
