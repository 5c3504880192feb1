#!/bin/sh
# deltafs rm, cp and mv of directories, also of those with volumes.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"

for epoch in 10 20 30; do
    for key in 1 2 3 4 5 6 7 8; do
        printf '%d %d %08x%08x\n' $epoch $key $epoch $key
    done
done >"$work/records"
mkdir "$work/v1" "$work/v2"
put() {
    name=$1
    shift
    "$put_records" "$work/$name" schema=a:u4,b:u4 partitions=3 "$@" <"$work/records" || fail put_records
}
put d volumes="$work/v1:$work/v2"
"$deltafs" attr "$work/d" dt=0.5
"$deltafs" attr "$work/d" dt=0.25 --from 20
"$deltafs" attr "$work/d" c==a+b
"$deltafs" attr "$work/d" a= --unit s
"$deltafs" scan "$work/d" --format csv | sort >"$work/all"
ls "$work"/v1/deltafs.* "$work"/v2/deltafs.* >"$work/out" || fail "nothing on volumes"

# A copy has all of it, in one place; of some epochs, these; bytes as keys, and values of any size, too.
expect 0 "$deltafs" cp "$work/d" "$work/copy"
expect 0 "$deltafs" verify "$work/copy"
"$deltafs" scan "$work/copy" --format csv | sort | cmp - "$work/all" || fail "the copy has other records"
"$deltafs" attr "$work/d" >"$work/attributes"
"$deltafs" attr "$work/copy" | cmp - "$work/attributes" || fail "the copy has other attributes"
[ -z "$(find "$work/copy" -type l)" ] || fail "the copy has links"
expect 0 env DELTAFS_LAYOUT=local "$deltafs" cp "$work/d" "$work/layout"
[ -z "$(find "$work/layout" -name '*.values')" ] || fail "the copy has the layout of a job"
rm -r "$work/layout"
expect 0 "$deltafs" cp --epochs 20: "$work/d" "$work/some"
"$deltafs" scan "$work/some" --format csv | sort >"$work/got"
grep -v ',10,' "$work/all" | cmp - "$work/got" || fail "other epochs than 20 and 30"
expect 1 "$deltafs" cp --epochs 40: "$work/d" "$work/none"
says "has no epoch with such a label"
[ ! -e "$work/none" ] || fail "a copy of nothing"
printf '1 6262 -\n1 61 0102\n2 61 03\n' | "$put_records" "$work/bytes" keys=bytes || fail put_records
expect 0 "$deltafs" cp "deltafs:$work/bytes" "$work/bytes2"
"$deltafs" scan "$work/bytes" --format csv >"$work/got"
"$deltafs" scan "$work/bytes2" --format csv | cmp - "$work/got" || fail "keys of bytes"
mkdir "$work/folder"
expect 0 "$deltafs" cp "$work/some" "$work/folder"
expect 0 "$deltafs" verify "$work/folder/some"
expect 3 "$deltafs" cp "$work/some" "$work/folder"
says "exists already"
expect 2 "$deltafs" cp -f "$work/some" "$work/folder"
expect 2 "$deltafs" cp --epochs 1 "$work/records" "$work/x"
for command in cp mv; do
    expect 3 "$deltafs" $command "$work/some" "$work/copy/inside"
    says "$work/copy is a DeltaFS directory"
done
expect 0 "$deltafs" verify "$work/copy"
# A damaged one is not copied, and nothing is left.
cp -r "$work/copy" "$work/damaged"
find "$work/damaged" -name '*.data' -size +0 | while read -r log; do
    printf '\377\377\377\377' | dd of="$log" bs=1 seek=40 conv=notrunc 2>/dev/null
done
expect 3 "$deltafs" cp "$work/damaged" "$work/never"
says "damaged at offset"
[ ! -e "$work/never" ] || fail "a copy of a damaged directory"
[ -z "$(find "$work" -maxdepth 1 -name '.deltafs*')" ] || fail "left: $(ls -A "$work")"

# A new name; what is on volumes stays there, and the directory can be written to.
expect 0 "$deltafs" mv "$work/d" "$work/e"
[ ! -e "$work/d" ] || fail "mv leaves the old name"
"$deltafs" scan "$work/e" --format csv | sort | cmp - "$work/all" || fail "mv: other records"
expect 0 "$deltafs" attr "$work/e" more=1
expect 3 "$deltafs" mv "$work/e" "$work/copy"
says "exists already"
expect 0 "$deltafs" mv "$work/some" "$work/folder/other"
expect 3 "$deltafs" mv "$work/records" "$work/x"
says "neither a DeltaFS directory nor a logical file"
expect 3 "$deltafs" mv "$work/folder" "$work/x"
expect 3 "$deltafs" mv "$work/missing" "$work/x"

# Removed with what is on volumes. What is not the directory's stops that before anything is gone.
echo mine >"$work/e/notes"
expect 3 "$deltafs" rm "$work/e"
says "$work/e/notes: is no part of the directory"
"$deltafs" scan "$work/e" --format csv | sort >"$work/got"
rm "$work/e/notes"
expect 0 "$deltafs" rm "$work/e" "$work/damaged"
[ ! -e "$work/e" ] && [ ! -e "$work/damaged" ] && [ -z "$(find "$work/v1" "$work/v2" -name "deltafs.*")" ] ||
    fail "rm leaves $(ls -A "$work" "$work/v1" "$work/v2")"
# A volume that is not mounted: its logs would stay for ever.
put h volumes="$work/v1:$work/v2"
mv "$work/v2" "$work/v2.away"
expect 3 "$deltafs" rm "$work/h"
says "if its volume is not mounted, mount it"
mv "$work/v2.away" "$work/v2"
expect 0 "$deltafs" rm "$work/h"
# A copy by cp -r, whose links lead to the same logs, removes nothing of them.
put f volumes="$work/v1:$work/v2"
cp -r "$work/f" "$work/g"
expect 3 "$deltafs" rm "$work/g"
expect 0 "$deltafs" verify "$work/f"
ln -s f "$work/link"
expect 3 "$deltafs" rm "$work/link"
says "a symbolic link"
expect 0 "$deltafs" verify "$work/f"
# A job of another host that may be writing keeps it.
printf 'host=elsewhere.example pid=1 job=- session=01234567-89ab-4def-8123-456789abcdef renewed=%020d\n' \
    "$(date +%s)" >"$work/f/LEASE"
expect 3 "$deltafs" rm "$work/f"
says "elsewhere.example"
expect 3 "$deltafs" mv "$work/f" "$work/x"
says "a job is writing it, or may be"
expect 0 "$deltafs" verify "$work/f"
rm "$work/f/LEASE"
# Without a manifest it is not known what it is.
expect 0 "$deltafs" rm "$work/f"
expect 3 "$deltafs" rm "$work/f"
expect 0 "$deltafs" rm -f "$work/f"
